//! Compares the refetch policies on a simulated web: prints a table, and draws a plot.
//!
//! The web and the measure are the crate's own test code, at full size. Everything follows
//! from one seed, so the same numbers come out wherever it runs.

use crawl::refetch::{Allowance, ChangeHistory, Policy, Refetch, next_look, watched};
#[path = "../../../crates/crawl/src/refetch/simulation.rs"]
mod simulation;

use anyhow::Context;
use simulation::{DAYS, SimulationResult, SimulatedWeb, estimate, fixed, formula};
use std::fmt::Write as _;

/// Looks at each document, on the average.
const LOOKS: [i64; 6] = [6, 12, 24, 48, 96, 192];
/// The most time that the formula may take, in fixed intervals: the best of these counts.
const FORMULA_MOST: [Option<i64>; 4] = [Some(2), Some(4), Some(8), None];
const SEED: u64 = 1;

/// One rule, in the plot and the table.
struct Line {
    name: &'static str,
    colour: &'static str,
    outcomes: Vec<SimulationResult>,
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let documents: usize = arguments.next().map_or(Ok(2_000), |text| text.parse())?;
    let web = SimulatedWeb::new(documents, SEED);
    let best_formula = |looks: i64| {
        let looks_max = u64::try_from(looks).unwrap_or(0) * documents as u64;
        let outcomes = FORMULA_MOST.map(|most| web.watch_tuned(formula(looks, most), looks_max));
        let better = |a: &SimulationResult, b: &SimulationResult| a.freshness.total_cmp(&b.freshness);
        outcomes.into_iter().max_by(better).unwrap_or_default()
    };
    let lines = [
        Line {
            name: "estimate",
            colour: "#0b6e4f",
            outcomes: LOOKS.map(|looks| web.watch(&estimate(looks, documents))).to_vec(),
        },
        Line {
            name: "fixed interval",
            colour: "#1f4e9c",
            outcomes: LOOKS.map(|looks| web.watch(&fixed(looks))).to_vec(),
        },
        Line {
            name: "original's formula",
            colour: "#b3541e",
            outcomes: LOOKS.map(best_formula).to_vec(),
        },
    ];
    print!("{}", table(&lines, documents));
    if let Some(path) = arguments.next() {
        std::fs::write(&path, plot(&lines)).with_context(|| format!("writing {path}"))?;
    }
    Ok(())
}

fn table(lines: &[Line], documents: usize) -> String {
    let mut out = String::from(
        "| looks a year | rule | looks spent | current | days behind | looks that found a change |\n\
         |--:|---|--:|--:|--:|--:|\n",
    );
    for (place, looks) in LOOKS.into_iter().enumerate() {
        for line in lines {
            let it = &line.outcomes[place];
            let spent = it.looks as f64 / documents as f64;
            let found = it.found as f64 / it.looks.max(1) as f64;
            let _ = writeln!(
                out,
                "| {looks} | {} | {spent:.1} | {:.1} % | {:.2} | {:.0} % |",
                line.name,
                it.freshness * 100.0,
                it.age_days,
                found * 100.0
            );
        }
    }
    out
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
/// Left, top, right and bottom of what is drawn on.
const FRAME: (f64, f64, f64, f64) = (64.0, 24.0, 560.0, 360.0);
/// The share of current copies at the bottom and at the top.
const SHARES: (f64, f64) = (0.4, 1.0);

fn plot(lines: &[Line]) -> String {
    let (left, top, right, bottom) = FRAME;
    let across = |place: usize| left + (right - left) * place as f64 / (LOOKS.len() - 1) as f64;
    let up = |share: f64| bottom - (bottom - top) * (share - SHARES.0) / (SHARES.1 - SHARES.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>Copies that are current, by looks at each document and by rule</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n"
    );
    for tenth in 4..=10 {
        let (share, y) = (f64::from(tenth) / 10.0, up(f64::from(tenth) / 10.0));
        let _ = writeln!(
            out,
            "<path d=\"M{left} {y:.1}H{right}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1}\" \
             text-anchor=\"end\">{:.0} %</text>",
            left - 8.0,
            y + 4.0,
            share * 100.0
        );
    }
    for (place, looks) in LOOKS.into_iter().enumerate() {
        let (x, y) = (across(place), bottom + 20.0);
        let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{looks}</text>");
    }
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">looks at each document in {DAYS} \
         days, on the average</text>",
        f64::midpoint(left, right),
        bottom + 44.0
    );
    for (number, line) in lines.iter().enumerate() {
        let points: Vec<String> = line
            .outcomes
            .iter()
            .enumerate()
            .map(|(place, it)| format!("{:.1},{:.1}", across(place), up(it.freshness)))
            .collect();
        let colour = line.colour;
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\"/>",
            points.join(" ")
        );
        let y = top + 24.0 + 24.0 * number as f64;
        let _ = writeln!(
            out,
            "<path d=\"M{} {y:.1}h18\" stroke=\"{colour}\" stroke-width=\"2.5\"/><text x=\"{}\" \
             y=\"{:.1}\">{}</text>",
            right + 16.0,
            right + 40.0,
            y + 4.0,
            line.name
        );
    }
    out.push_str("</svg>\n");
    out
}
