//! A server that has the data, as a verb is told of it.
//!
//! Every question of the command line goes to one route of the server. Invariants: a token
//! goes to nobody but the server that was named, and over the network only encrypted; an
//! answer is bounded in size and time.

use anyhow::{Context, bail, ensure};
use clap::Args as ClapArgs;
use serde_json::Value as Json;
use std::io::Read;
use std::net::IpAddr;
use std::time::Duration;
use store::socket::SocketRequest;

/// The longest an answer may take.
const TIME_MAX: Duration = Duration::from_secs(90);
/// Bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// Where the token is if it is not on the command line, where others can see it.
const TOKEN_VARIABLE: &str = "DRIFTLINE_TOKEN";

/// A server that has the data.
#[derive(ClapArgs)]
pub struct ServerAddress {
    /// Send the request to a server instead of reading local data
    #[arg(long, value_name = "URL", conflicts_with_all = ["data", "database"])]
    server: Option<String>,
    /// Token for the server; the environment variable hides it from other users of this machine
    #[arg(long, value_name = "TOKEN", env = TOKEN_VARIABLE, hide_env_values = true)]
    token: Option<String>,
}

impl ServerAddress {
    /// Whether there is one.
    pub fn is_named(&self) -> bool {
        self.server.is_some()
    }

    /// Refuses a server for what is done where the data is.
    pub fn is_not_named(&self) -> anyhow::Result<()> {
        ensure!(
            self.server.is_none(),
            "this command does not work through a server; run it where the data is, without \
             --server"
        );
        Ok(())
    }

    /// The flags that name it again. A token is not repeated.
    pub fn flags(&self) -> String {
        let url = self.server.as_deref().unwrap_or_default();
        format!(" --server {}", crate::text::quoted(url))
    }

    pub fn ask(&self, question: &SocketRequest) -> anyhow::Result<Json> {
        let named = self.server.as_deref().unwrap_or_default();
        let url = address(named)?;
        let token = self.token.as_deref().filter(|it| !it.is_empty()).with_context(|| {
            format!("a server needs a token: --token TOKEN, or the variable {TOKEN_VARIABLE}")
        })?;
        let client = reqwest::blocking::Client::builder()
            .timeout(TIME_MAX)
            // It would see the token.
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let response = client
            .post(url)
            .bearer_auth(token)
            .header("content-type", "application/json")
            .body(serde_json::to_string(question)?)
            .send()
            .with_context(|| {
                format!("cannot reach {named}; is it a driftline server, and is it running?")
            })?;
        let status = response.status();
        let mut body = Vec::new();
        let read = response.take(ANSWER_BYTES_MAX + 1).read_to_end(&mut body);
        read.with_context(|| format!("the answer of {named} is incomplete"))?;
        ensure!(body.len() as u64 <= ANSWER_BYTES_MAX, "the answer of {named} is too long");
        let answer: Option<Json> = serde_json::from_slice(&body).ok();
        match answer {
            Some(answer) if status.is_success() => Ok(answer),
            Some(Json::Object(problem)) if problem.get("detail").is_some_and(Json::is_string) => {
                bail!("{}", problem["detail"].as_str().unwrap_or_default())
            }
            _ => bail!(
                "{named} answers with status {status}, so it is not a driftline server; \
                 check --server"
            ),
        }
    }
}

/// The route that answers questions, unless a token would go there for all to read.
fn address(named: &str) -> anyhow::Result<url::Url> {
    let wrong = || format!("--server is a URL such as https://search.example, not {named:?}");
    let url = url::Url::parse(named).with_context(wrong)?;
    let host = url.host_str().with_context(wrong)?.trim_matches(['[', ']']);
    let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|it| it.is_loopback());
    match url.scheme() {
        "https" => {}
        "http" if is_here => {}
        "http" => {
            bail!(
                "{named} is not encrypted, so the token could be read on the network; use https://"
            )
        }
        _ => bail!(wrong()),
    }
    Ok(url.join("/api/v1/ask")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_encrypted_or_not_at_all_but_to_this_machine() {
        for good in
            ["https://a.example/", "http://127.0.0.1:8470", "http://localhost/x", "http://[::1]:1"]
        {
            assert!(address(good).is_ok_and(|it| it.path() == "/api/v1/ask"), "{good}");
        }
        for bad in
            ["http://a.example", "http://10.0.0.1:8470", "ftp://localhost", "localhost:8470", ""]
        {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
