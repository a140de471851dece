//! Settings as people type them, `name=value`, and as connectors read them: JSON.
//!
//! What a setting takes its connector's list says; whether the whole makes sense the
//! connector's own check says afterwards. Invariant: a secret is never shown; [`HIDDEN`]
//! stands for it, and coming back in means what is stored.

use serde_json::{Map, Value as Json};
use store::catalog::{ConfigField, Connector, SettingKind};

/// What is shown instead of a secret.
pub const HIDDEN: &str = "***";

/// Units of a span of time, as people write them, and their milliseconds.
const UNITS: [(&[&str], f64); 6] = [
    (&["ms"], 1.0),
    (&["s", "sec", "second", "seconds"], 1_000.0),
    (&["min", "m", "minute", "minutes"], 60_000.0),
    (&["h", "hour", "hours"], 3_600_000.0),
    (&["d", "day", "days"], 86_400_000.0),
    (&["w", "week", "weeks"], 604_800_000.0),
];

/// Changes settings by `name=value` texts. `name=` takes back what was said. A list is
/// replaced by all the values that are given for it.
pub fn assign(settings: &[ConfigField], json: &mut Json, texts: &[String]) -> Result<(), String> {
    let mut begun: Vec<&str> = Vec::new();
    for text in texts {
        let Some((name, value)) = text.split_once('=') else {
            return Err(format!("{text:?} is not a setting; write name=value"));
        };
        let setting = settings.iter().find(|it| it.name == name).ok_or_else(|| {
            let names: Vec<&str> = settings.iter().map(|it| it.name).collect();
            match names.is_empty() {
                true => format!("{name:?} is not a setting: there are none"),
                false => {
                    format!("{name:?} is not a setting; the settings are: {}", names.join(", "))
                }
            }
        })?;
        if value.is_empty() {
            remove(json, name);
            continue;
        }
        let mut value = self::value(setting, value)?;
        if setting.kind == SettingKind::List && begun.contains(&setting.name) {
            let before = get(json, name).and_then(Json::as_array).cloned().unwrap_or_default();
            let new = value.as_array().cloned().unwrap_or_default();
            value = Json::Array([before, new].concat());
        }
        begun.push(setting.name);
        set(json, name, value);
    }
    Ok(())
}

/// One value, as a person types it.
pub fn value(setting: &ConfigField, text: &str) -> Result<Json, String> {
    let name = setting.name;
    match setting.kind {
        SettingKind::Text | SettingKind::Secret => Ok(text.into()),
        SettingKind::List => Ok(Json::Array(vec![text.into()])),
        SettingKind::Flag => match text {
            "yes" | "true" | "on" => Ok(true.into()),
            "no" | "false" | "off" => Ok(false.into()),
            _ => Err(format!("{name} is yes or no, not {text:?}")),
        },
        SettingKind::Number { least, most } => match text.parse::<i64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(number.into()),
            _ if most == i64::MAX => {
                Err(format!("{name} is a whole number of at least {least}, not {text:?}"))
            }
            _ => Err(format!("{name} is a whole number from {least} to {most}, not {text:?}")),
        },
        SettingKind::Seconds => milliseconds(text).map(Json::from).ok_or_else(|| {
            format!("{name} is a duration, such as 500ms, 2s, 5min or 1h, not {text:?}")
        }),
        SettingKind::Choice(choices) if choices.contains(&text) => Ok(text.into()),
        SettingKind::Choice(choices) => {
            Err(format!("{name} is one of {}, not {text:?}", choices.join(", ")))
        }
    }
}

/// A span of time in milliseconds, such as `500ms`, `1.5 h` or `1h30min`; a number
/// without a unit is of milliseconds.
pub fn milliseconds(text: &str) -> Option<i64> {
    let mut rest = text.trim();
    if let Ok(number) = rest.parse::<f64>() {
        return whole(number);
    }
    let mut ms = 0.0;
    loop {
        let digits = rest.bytes().take_while(|it| it.is_ascii_digit() || *it == b'.').count();
        let (number, after) = rest.split_at(digits);
        let after = after.trim_start();
        let letters = after.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, after) = after.split_at(letters);
        let scale = UNITS.iter().find(|(names, _)| names.contains(&unit))?.1;
        ms += number.parse::<f64>().ok()? * scale;
        rest = after.trim_start();
        if rest.is_empty() {
            return whole(ms);
        }
    }
}

/// Milliseconds that make sense.
fn whole(ms: f64) -> Option<i64> {
    let ms = ms.round();
    (ms.is_finite() && (0.0..9e15).contains(&ms)).then_some(ms as i64)
}

/// The field of a name such as `scope.reach`.
pub fn get<'a>(json: &'a Json, name: &str) -> Option<&'a Json> {
    name.split('.').try_fold(json, |inner, part| inner.get(part))
}

/// Sets the field of a name, and makes what it lies in.
fn set(json: &mut Json, name: &str, value: Json) {
    let mut inner = json;
    for part in name.split('.') {
        if !inner.is_object() {
            *inner = Json::Object(Map::new());
        }
        inner = &mut inner[part];
    }
    *inner = value;
}

/// Removes the field of a name.
pub fn remove(json: &mut Json, name: &str) {
    let (outer, last) = name.rsplit_once('.').unwrap_or(("", name));
    let inner = match outer {
        "" => Some(json),
        outer => outer.split('.').try_fold(json, |inner, part| inner.get_mut(part)),
    };
    if let Some(Json::Object(fields)) = inner {
        fields.remove(last);
    }
}

/// The names of all fields, in order.
#[cfg(test)]
pub fn names(json: &Json) -> Vec<String> {
    let mut found: Vec<String> = fields(json).into_iter().map(|(name, _)| name).collect();
    found.sort();
    found
}

/// All fields with their values; a field with fields in it is named by these.
pub fn fields(json: &Json) -> Vec<(String, &Json)> {
    let mut found = Vec::new();
    let mut pending = vec![(String::new(), json)];
    while let Some((name, value)) = pending.pop() {
        match value {
            Json::Object(inner) if name.is_empty() || !inner.is_empty() => {
                for (field, value) in inner.iter().rev() {
                    let dot = if name.is_empty() { "" } else { "." };
                    pending.push((format!("{name}{dot}{field}"), value));
                }
            }
            value => found.push((name, value)),
        }
    }
    found
}

/// Settings made of their examples.
#[cfg(test)]
pub fn example(settings: &[ConfigField]) -> Json {
    let mut json = Json::Object(Map::new());
    for setting in settings {
        if let Ok(value) = value(setting, setting.example) {
            set(&mut json, setting.name, value);
        }
    }
    json
}

/// Where the secrets of these settings are, as JSON pointers behind a prefix.
pub fn secrets(settings: &[ConfigField], prefix: &str) -> Vec<String> {
    let secret = settings.iter().filter(|it| it.kind == SettingKind::Secret);
    secret.map(|it| format!("{prefix}/{}", it.name.replace('.', "/"))).collect()
}

/// Settings that two configurations differ in and that say where a connector's secrets go, or how
/// they get there. What is not said is what holds then.
pub fn destinations_that_differ(
    connector: &Connector,
    one: &Json,
    other: &Json,
) -> Vec<&'static str> {
    let said = |setting: &ConfigField, json: &Json| {
        let default = || value(setting, setting.default?).ok();
        let said = get(json, setting.name).filter(|it| !it.is_null()).cloned().or_else(default);
        said.filter(|it| it.as_str() != Some("") && it.as_array().is_none_or(|all| !all.is_empty()))
    };
    let travels = |it: &&ConfigField| {
        it.kind != SettingKind::Secret && !connector.not_destination.contains(&it.name)
    };
    let settings = connector.settings.iter().filter(travels);
    settings.filter(|it| said(it, one) != said(it, other)).map(|it| it.name).collect()
}

/// Puts [`HIDDEN`] in the place of every secret.
pub fn hide(json: &mut Json, secrets: &[String]) {
    for place in secrets {
        if let Some(secret) = json.pointer_mut(place).filter(|secret| !secret.is_null()) {
            *secret = HIDDEN.into();
        }
    }
}

/// Puts what is stored in the place of every [`HIDDEN`].
pub fn reveal(json: &mut Json, secrets: &[String], stored: Option<&Json>) -> Result<(), String> {
    for place in secrets {
        let Some(secret) = json.pointer_mut(place) else { continue };
        if secret.as_str() != Some(HIDDEN) {
            continue;
        }
        let Some(known) = stored.and_then(|stored| stored.pointer(place)) else {
            return Err(format!(
                "{} is {HIDDEN:?}, which stands for the stored secret, but none is stored; write \
                 the secret itself",
                place.trim_start_matches('/').replace('/', ".")
            ));
        };
        *secret = known.clone();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn setting(name: &'static str, kind: SettingKind) -> ConfigField {
        ConfigField { name, about: "", example: "", default: None, kind }
    }

    fn all() -> Vec<ConfigField> {
        vec![
            setting("title", SettingKind::Text),
            setting("tries", SettingKind::Number { least: 1, most: 9 }),
            setting("loud", SettingKind::Flag),
            setting("wait_ms", SettingKind::Seconds),
            setting("scope.reach", SettingKind::Choice(&["near", "far"])),
            setting("seeds", SettingKind::List),
            setting("login.password", SettingKind::Secret),
        ]
    }

    fn assigned(mut json: Json, texts: &[&str]) -> Result<Json, String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        assign(&all(), &mut json, &texts).map(|()| json)
    }

    #[test]
    fn settings_are_typed_by_their_kind() {
        let texts = ["title=a=b", "tries=3", "loud=yes", "wait_ms=1.5s", "scope.reach=far"];
        let made = assigned(json!({"seeds": ["old"]}), &texts).unwrap();
        let expected = json!({"seeds": ["old"], "title": "a=b", "tries": 3, "loud": true,
                              "wait_ms": 1500, "scope": {"reach": "far"}});
        assert_eq!(made, expected);
        let lists = assigned(made, &["seeds=x", "seeds=y", "title=", "scope.reach="]).unwrap();
        assert_eq!(lists["seeds"], json!(["x", "y"]), "a list is replaced by what is given");
        assert_eq!(get(&lists, "title"), None);
        assert_eq!(lists["scope"], json!({}));
    }

    #[test]
    fn what_cannot_be_typed_is_refused_with_what_can() {
        for (text, words) in [
            ("tries", "name=value"),
            ("tires=3", "tries"),
            ("tries=10", "from 1 to 9"),
            ("tries=x", "from 1 to 9"),
            ("loud=maybe", "yes or no"),
            ("wait_ms=soon", "500ms"),
            ("wait_ms=-1s", "500ms"),
            ("scope.reach=here", "near, far"),
        ] {
            let refused = assigned(json!({}), &[text]).unwrap_err();
            assert!(refused.contains(words), "{text}: {refused}");
        }
        assert!(assign(&[], &mut json!({}), &["a=1".to_owned()]).unwrap_err().contains("none"));
    }

    #[test]
    fn spans_of_time_have_units() {
        let cases =
            [("0", 0), ("500ms", 500), ("2 min", 120_000), ("1h", 3_600_000), ("1d", 86_400_000)];
        for (text, ms) in cases {
            assert_eq!(milliseconds(text), Some(ms), "{text}");
        }
        for (text, ms) in [
            ("1h30min", 5_400_000),
            ("1 day 6 h", 108_000_000),
            ("1.5 h", 5_400_000),
            ("2w", 1_209_600_000),
        ] {
            assert_eq!(milliseconds(text), Some(ms), "{text}");
        }
        for text in ["", "s", "1 year", "1e300", "NaN", "inf", "é", "1h30", "1h é", "-1s", "1.2.3s"]
        {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }

    #[test]
    fn a_secret_is_hidden_and_what_is_hidden_means_what_is_stored() {
        let stored = json!({"title": "x", "login": {"password": "hunter2"}});
        let places = secrets(&all(), "");
        assert_eq!(places, ["/login/password"]);
        let mut shown = stored.clone();
        hide(&mut shown, &places);
        assert!(!shown.to_string().contains("hunter2"));
        assert_eq!(shown["title"], "x");
        reveal(&mut shown, &places, Some(&stored)).unwrap();
        assert_eq!(shown, stored);
        let mut other = json!({"login": {"password": "new"}});
        reveal(&mut other, &places, Some(&stored)).unwrap();
        assert_eq!(other["login"]["password"], "new");
        hide(&mut other, &places);
        assert!(reveal(&mut other, &places, None).unwrap_err().contains("login.password"));
        let mut none = json!({});
        hide(&mut none, &places);
        assert_eq!(none, json!({}), "there is nothing to hide");
    }

    #[test]
    fn fields_are_named_from_the_outside_in() {
        let json = json!({"b": {"y": 1, "x": []}, "a": {}, "c": null});
        assert_eq!(names(&json), ["a", "b.x", "b.y", "c"]);
        assert!(names(&json!({})).is_empty());
    }
}
