//! A pipeline as people write it: for each output the way to it, `transformation,output`.
//!
//! Ways that begin alike share their beginning, so that a document is transformed once.
//! Invariant: a stage that was there, behind the same ones, keeps what else is said of it.

use crate::definitions::StageForm;
use crate::refusal::require;
use std::collections::HashMap;

/// The pipeline of some ways.
pub fn read(ways: &[String], before: &[StageForm]) -> anyhow::Result<Vec<StageForm>> {
    let known = known(before);
    let mut stages: Vec<StageForm> = Vec::new();
    let mut there: HashMap<Way, i64> = HashMap::new();
    for text in ways {
        let names: Vec<&str> = text.split(',').map(str::trim).collect();
        require!(
            names.iter().all(|name| !name.is_empty()),
            "--pipeline {text:?} cannot be read; write the names of the transformations, if any, \
             and then of the output, such as text,copy"
        );
        let mut after = None;
        for (at, name) in names.iter().enumerate() {
            let is_output = at + 1 == names.len();
            let way: Way =
                (names[..=at].iter().map(|name| (*name).to_owned()).collect(), is_output);
            if let Some(number) = there.get(&way) {
                require!(!is_output, "--pipeline {text:?} is given twice; give it once");
                after = Some(*number);
                continue;
            }
            let said = known.get(&way).copied();
            let name = Some((*name).to_owned());
            let (transformation, output) = if is_output { (None, name) } else { (name, None) };
            stages.push(StageForm {
                transformation,
                output,
                after,
                description: said.and_then(|it| it.description.clone()),
                spec: said.map_or(serde_json::json!({}), |it| it.spec.clone()),
            });
            let number = stages.len() as i64 - 1;
            there.insert(way, number);
            after = Some(number);
        }
    }
    Ok(stages)
}

/// The names from the repository to a stage, and whether it is an output.
type Way = (Vec<String>, bool);

/// The stages of a pipeline by the ways to them.
fn known(stages: &[StageForm]) -> HashMap<Way, &StageForm> {
    let mut ways: Vec<Vec<String>> = Vec::new();
    let mut found = HashMap::new();
    for stage in stages {
        let before = stage.after.and_then(|after| ways.get(usize::try_from(after).ok()?));
        let mut way = before.cloned().unwrap_or_default();
        way.extend(stage.transformation.clone().or_else(|| stage.output.clone()));
        found.insert((way.clone(), stage.output.is_some()), stage);
        ways.push(way);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn told(stages: &[StageForm]) -> Vec<(&str, Option<i64>)> {
        stages
            .iter()
            .map(|it| {
                let name = it.transformation.as_deref().or(it.output.as_deref());
                (name.unwrap_or_default(), it.after)
            })
            .collect()
    }

    #[test]
    fn ways_that_begin_alike_share_their_beginning() {
        let stages = read(&ways(&["copy", "text, solr", "text,tidy,disk"]), &[]).unwrap();
        let expected = [
            ("copy", None),
            ("text", None),
            ("solr", Some(1)),
            ("tidy", Some(1)),
            ("disk", Some(3)),
        ];
        assert_eq!(told(&stages), expected);
        assert_eq!(stages[1].transformation.as_deref(), Some("text"));
        assert_eq!(stages[4].output.as_deref(), Some("disk"));
        assert_eq!(read(&[], &stages).unwrap(), []);
    }

    #[test]
    fn a_stage_that_was_there_keeps_its_settings() {
        let mut before = read(&ways(&["text,copy"]), &[]).unwrap();
        before[0].spec = serde_json::json!({"limit": 3});
        before[1].description = Some("all of it".into());
        let after = read(&ways(&["disk", "text,copy"]), &before).unwrap();
        assert_eq!(after[1].spec, serde_json::json!({"limit": 3}));
        assert_eq!(after[2].description.as_deref(), Some("all of it"));
        let moved = read(&ways(&["copy"]), &before).unwrap();
        assert_eq!(moved[0].description, None, "it hears something else now");
    }

    #[test]
    fn what_is_no_way_is_refused() {
        for bad in [["a,"].as_slice(), &[",a"], &["a,,b"], &["a", "a"]] {
            let refused = read(&ways(bad), &[]).unwrap_err().to_string();
            assert!(refused.contains("--pipeline"), "{refused}");
        }
    }
}
