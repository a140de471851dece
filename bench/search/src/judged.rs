//! Questions with the pages that answer them.

use anyhow::{Context, Result};
use outputs::search::ask::Question;
use std::collections::HashMap;
use std::path::Path;

/// A question, and what pages are worth for it.
pub struct Judged {
    pub text: String,
    grades: HashMap<String, u32>,
}

pub fn read(path: &Path, site: &str) -> Result<Vec<Judged>> {
    let text = std::fs::read_to_string(path)?;
    let mut all = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (text, pages) = line.split_once('\t').with_context(|| format!("no tab in {line:?}"))?;
        let mut grades = HashMap::new();
        for page in pages.split(' ') {
            let (grade, path) = page.split_once(':').with_context(|| format!("no grade: {page}"))?;
            grades.insert(format!("{site}{path}"), grade.parse()?);
        }
        all.push(Judged { text: text.to_owned(), grades });
    }
    Ok(all)
}

impl Judged {
    pub fn question(&self) -> Question {
        Question { text: self.text.clone(), ..Question::default() }
    }

    /// How good the first ten are, beside the best order there is.
    pub fn ndcg(&self, found: &[String]) -> f64 {
        let worth = |at: usize, grade: u32| (2f64.powi(grade as i32) - 1.0) / (at as f64 + 2.0).log2();
        let grade = |url: &String| self.grades.get(url).copied().unwrap_or(0);
        let got: f64 = found.iter().take(10).enumerate().map(|(at, url)| worth(at, grade(url))).sum();
        let mut best: Vec<u32> = self.grades.values().copied().collect();
        best.sort_unstable_by(|a, b| b.cmp(a));
        let most: f64 = best.iter().take(10).enumerate().map(|(at, it)| worth(at, *it)).sum();
        got / most
    }
}
