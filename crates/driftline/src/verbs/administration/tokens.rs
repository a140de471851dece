//! Tokens: who may call the HTTP API.
//!
//! Invariant: a token is shown once, when it is made; nothing keeps more than its hash.

use super::ADMIN;
use crate::http::access::{hash_of, new_token};
use crate::refusal::{refuse, require};
use crate::text::{date, shown};
use crate::verbs::access::{Area, COMMAND_LINE, Caller, Needs, TokenForbids};
use crate::verbs::audit_trail::{self, AuditSubject};
use crate::verbs::changes::{ChangeContext, ChangeResult};
use crate::verbs::context::VerbContext;
use crate::verbs::{Change, Verb};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::tables::tokens::{self, Role, Token};
use store::{Error, clock};

/// Characters of a name.
const NAME_MAX: usize = 100;

/// Tokens that were made, the newest first.
pub struct Tokens;

/// Makes a token, and shows it this once.
pub struct CreateToken;

/// Takes a token back.
pub struct RevokeToken;

/// A token that is to be made.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Name of the token.
    pub name: String,
    /// Role of the token.
    pub role: Role,
    /// Areas of the API it is valid for; all if empty.
    #[serde(default)]
    pub areas: Vec<String>,
    /// How long it is valid; until it is revoked if omitted.
    #[serde(default)]
    pub expires_in_ms: Option<i64>,
}

/// A token that was made.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct MadeToken {
    pub changes: Vec<String>,
    /// That it was done.
    pub applied: bool,
    /// The token. It is shown this once.
    pub token: String,
}

/// A token, as it is listed.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct TokenLine {
    pub name: String,
    /// Role of the token.
    pub role: Role,
    /// Areas of the API it is valid for; all if empty.
    pub areas: Vec<String>,
    /// When it was made.
    pub created_ms: i64,
    /// Until when it is good; until it is revoked if nothing is said.
    pub expires_ms: Option<i64>,
    /// When it was last used, to a minute.
    pub used_ms: Option<i64>,
    /// When it was taken back.
    pub revoked_ms: Option<i64>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// The token's name
    pub name: String,
}

impl Verb for Tokens {
    const NAME: &'static str = "tokens";
    const NEEDS: Option<Needs> = ADMIN;
    type Request = ();
    type Response = Vec<TokenLine>;

    fn answer(context: &VerbContext, _: ()) -> anyhow::Result<Vec<TokenLine>> {
        let found = context.db.read(tokens::list)?;
        let line = |it: Token| TokenLine {
            name: it.name,
            role: it.role,
            areas: it.areas,
            created_ms: it.created_ms,
            expires_ms: it.expires_ms,
            used_ms: it.used_ms,
            revoked_ms: it.revoked_ms,
        };
        Ok(found.into_iter().map(line).collect())
    }
}

impl Change for CreateToken {
    const NAME: &'static str = "token-create";
    const NEEDS: Option<Needs> = ADMIN;
    type Request = NewToken;
    type Response = MadeToken;

    fn carry_out(context: &ChangeContext, new: NewToken) -> anyhow::Result<MadeToken> {
        make(context, new)
    }

    fn subject(new: &NewToken) -> AuditSubject {
        AuditSubject::of("token", "create", &new.name)
    }

    /// The token is not among it.
    fn outcome(made: &MadeToken) -> String {
        made.changes.join("\n")
    }

    /// A token that may more, or lasts longer, would let its maker out of its own limits.
    fn check_caller(new: &NewToken, caller: &Caller) -> anyhow::Result<()> {
        let forbidden = |why: &str| Err(TokenForbids(why.to_owned()).into());
        let is_wider = new.areas.is_empty() || new.areas.iter().any(|area| !caller.is_for(area));
        if !caller.areas.is_empty() && is_wider {
            return forbidden("a token cannot create one with more permissions than its own");
        }
        let Some(own_ms) = caller.expires_ms else { return Ok(()) };
        let expires_ms = new.expires_in_ms.map(|ms| clock::now_ms().saturating_add(ms));
        match expires_ms {
            Some(expires_ms) if expires_ms <= own_ms => Ok(()),
            _ => forbidden("a token cannot create one that is valid for longer than itself"),
        }
    }
}

impl Change for RevokeToken {
    const NAME: &'static str = "token-revoke";
    const NEEDS: Option<Needs> = ADMIN;
    type Request = TokenRequest;
    type Response = ChangeResult;

    fn carry_out(context: &ChangeContext, request: TokenRequest) -> anyhow::Result<ChangeResult> {
        let now_ms = clock::now_ms();
        let (name, revoked) = (request.name.clone(), request.name);
        if !context.db.write(move |tx| tokens::revoke(tx, &revoked, now_ms))? {
            refuse!(
                "there is no valid token named {}; `driftline token list` lists them",
                shown(&name)
            );
        }
        Ok(ChangeResult::done(vec![format!("token {name}: revoked")]))
    }

    fn subject(request: &TokenRequest) -> AuditSubject {
        AuditSubject::of("token", "revoke", &request.name)
    }

    fn outcome(changed: &ChangeResult) -> String {
        changed.text()
    }
}

fn make(context: &ChangeContext, new: NewToken) -> anyhow::Result<MadeToken> {
    let now_ms = clock::now_ms();
    let NewToken { name, role, areas, expires_in_ms } = new;
    let is_fit = !name.trim().is_empty() && name.chars().count() <= NAME_MAX;
    require!(is_fit, "a token's name has 1 to {NAME_MAX} characters");
    require!(
        name != COMMAND_LINE,
        "this name is reserved for the command line; choose another name"
    );
    let known = Area::ALL.map(Area::name);
    if let Some(area) = areas.iter().find(|it| !known.contains(&it.as_str())) {
        refuse!("there is no area {}; there are {}", shown(area), known.join(", "));
    }
    require!(expires_in_ms.is_none_or(|ms| ms > 0), "a token must be valid for some time");
    let expires_ms = expires_in_ms.map(|ms| now_ms.saturating_add(ms));
    let secret = new_token()?;
    let (id, hash) = (audit_trail::new_id()?, hash_of(&secret));
    let (created_ms, used_ms, revoked_ms) = (now_ms, None, None);
    let limits =
        if areas.is_empty() { String::new() } else { format!(" for {}", areas.join(", ")) };
    let until = expires_ms.map_or(String::new(), |ms| format!(" until {}", date(ms)));
    let line = format!("token {name}: created, {}{limits}{until}", role.name());
    let token =
        Token { id, name: name.clone(), role, areas, created_ms, expires_ms, used_ms, revoked_ms };
    match context.db.write(move |tx| tokens::create(tx, &token, &hash)) {
        Err(Error::Duplicate { .. }) => refuse!(
            "there is already a token named {}; revoke it, or choose another name",
            shown(&name)
        ),
        done => done?,
    }
    Ok(MadeToken { changes: vec![line], applied: true, token: secret })
}
