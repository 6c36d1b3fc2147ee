//! `auth`: logins by OAuth 2 (§12.2 of the contract).

use std::io::Write as _;

use longhaul_client::FoundCard;
use longhaul_client::card::CardReference;
use longhaul_client::oauth::{
    AgentUrl, AuthorizationServer, Authorizer, Clock as _, Grant, OAuthClient, OAuthError, Scopes, StoreError,
    StoredToken, SystemClock, TokenStore,
};
use serde_json::{Value, json};

use crate::arguments::OutputForm;
use crate::caller::arguments::{AuthCommand, Flow, LoginFlags, LogoutFlags};
use crate::caller::failure::{Credentials, Failure, LocalCode, told};
use crate::caller::render::{Page, clean};
use crate::caller::session::{End, Session};

/// Does what the command says.
///
/// # Errors
///
/// [`End`] when it came to nothing.
pub async fn run(session: &Session, command: &AuthCommand) -> Result<(), End> {
    match command {
        AuthCommand::Login(flags) => login(session, flags).await,
        AuthCommand::Logout(flags) => logout(session, flags).await,
        AuthCommand::Status(_) => status(session).await,
    }
}

async fn login(session: &Session, flags: &LoginFlags) -> Result<(), End> {
    let store = store(session)?;
    let asked = Scopes::new(flags.scope.iter().flat_map(|scopes| scopes.split_ascii_whitespace()))
        .map_err(|error| Failure::usage(format!("--scope: {error}")))?;
    let found = session.card().await?;
    let authorizer = session.way.authorizer();
    let failed = |error: &OAuthError| failure(session, error);
    let server = server(&authorizer, &found, flags).await.map_err(|error| failed(&error))?;
    let client = client(session, &server)?;
    let scopes = if asked.is_empty() { server.scopes().clone() } else { asked };
    let grant = grant(&server, &client, flags.flow);
    eprintln!("longhaul: {}", clean::line(&format!("logging in to {} for {}", server.host(), server.agent())));
    let token = match grant {
        Grant::ClientCredentials if client.secret.is_none() => {
            let message = format!("{} gives tokens to clients that have a secret", server.host());
            return Err(Failure::usage(message).hint("give it with A2ACLI_CLIENT_SECRET, or --client-secret").into());
        }
        Grant::ClientCredentials => authorizer.client_credentials(&server, &client, &scopes).await,
        Grant::DeviceCode => by_code(&authorizer, &server, &client, &scopes).await,
    };
    let token = token.map_err(|error| failed(&error))?;
    store.put(token.clone()).await.map_err(|error| store_failure(&error))?;
    tell(session, &token, &store)
}

async fn server(
    authorizer: &Authorizer,
    found: &FoundCard,
    flags: &LoginFlags,
) -> Result<AuthorizationServer, OAuthError> {
    let scheme = flags.scheme.as_deref();
    match &flags.token_url {
        Some(token_url) => authorizer.server_at(found, scheme, token_url, flags.device_url.as_deref()),
        None => authorizer.discover(found, scheme).await,
    }
}

/// Who is to log in.
fn client(session: &Session, server: &AuthorizationServer) -> Result<OAuthClient, Failure> {
    let id = session.options.client_id.clone().ok_or_else(|| {
        Failure::usage("no client is named").hint(format!(
            "whoever runs {} gives ids to clients: name yours with --client-id ID, or A2ACLI_CLIENT_ID",
            server.host()
        ))
    })?;
    Ok(OAuthClient { id, secret: session.options.client_secret.clone() })
}

/// The way to the token: as asked for, else as the card says, else as it can be done.
fn grant(server: &AuthorizationServer, client: &OAuthClient, asked: Option<Flow>) -> Grant {
    match (asked, server.declared()) {
        (Some(Flow::DeviceCode), _) => Grant::DeviceCode,
        (Some(Flow::ClientCredentials), _) => Grant::ClientCredentials,
        (None, Some(declared)) => declared,
        (None, None) if client.secret.is_some() && !server.offers_device_login() => Grant::ClientCredentials,
        (None, None) => Grant::DeviceCode,
    }
}

/// Shows a code, and waits until somebody has entered it.
async fn by_code(
    authorizer: &Authorizer,
    server: &AuthorizationServer,
    client: &OAuthClient,
    scopes: &Scopes,
) -> Result<StoredToken, OAuthError> {
    let started = authorizer.start_device_login(server, client, scopes).await?;
    let mut page = Page::new();
    page.field("Open", &started.verification_uri);
    page.field("Code", &started.user_code);
    page.field_if("Or open", started.verification_uri_complete.as_deref().unwrap_or_default());
    page.field("Until", started.expires_at);
    eprint!("{}", page.into_text());
    eprintln!("longhaul: waiting until the code is entered there");
    let _ = std::io::stderr().flush();
    authorizer.finish_device_login(started).await
}

fn tell(session: &Session, token: &StoredToken, store: &TokenStore) -> Result<(), End> {
    match session.options.output {
        OutputForm::Json => session.print_json(&one(token)),
        OutputForm::Text => {
            let mut page = Page::new();
            write(&mut page, token);
            page.field("Kept in", store.path().display());
            session.print(&page.into_text())
        }
    }
}

async fn logout(session: &Session, flags: &LogoutFlags) -> Result<(), End> {
    let store = store(session)?;
    let removed = if flags.all {
        store.remove_all().await.map_err(|error| store_failure(&error))?
    } else {
        of_agent(session, &store).await?
    };
    match session.options.output {
        OutputForm::Json => {
            let all: Vec<Value> = removed.iter().map(one).collect();
            session.print_json(&json!({ "removed": all }))
        }
        OutputForm::Text => {
            let mut page = Page::new();
            for token in &removed {
                page.field("Logged out of", &token.key.agent);
            }
            page.field("Removed", removed.len());
            session.print(&page.into_text())
        }
    }
}

/// Removes the logins of the agent that is named. It need not be there any more.
async fn of_agent(session: &Session, store: &TokenStore) -> Result<Vec<StoredToken>, End> {
    let known = store.tokens().await.map_err(|error| store_failure(&error))?;
    let reference = session.options.agent()?;
    let places = reference.parse::<CardReference>().map(|reference| reference.candidates()).unwrap_or_default();
    let named = known.iter().map(|token| &token.key.agent).find(|agent| places.iter().any(|at| at == agent.as_str()));
    let agent = match named {
        Some(agent) => agent.clone(),
        None => match AgentUrl::of(&session.card().await?) {
            Some(agent) => agent,
            None => return Ok(Vec::new()),
        },
    };
    Ok(store.remove(&agent).await.map_err(|error| store_failure(&error))?)
}

async fn status(session: &Session) -> Result<(), End> {
    let store = store(session)?;
    let known = store.tokens().await.map_err(|error| store_failure(&error))?;
    let is_given = session.options.credentials() == Credentials::Given;
    match session.options.output {
        OutputForm::Json => {
            let all: Vec<Value> = known.iter().map(one).collect();
            session.print_json(&json!({ "logins": all, "credentialGiven": is_given }))
        }
        OutputForm::Text => {
            let mut page = Page::new();
            for token in &known {
                write(&mut page, token);
            }
            page.field("Logins", known.len());
            page.field("Kept in", store.path().display());
            if is_given {
                page.field("Stronger", "a bearer token or an API key is set: longhaul config show says where");
            }
            session.print(&page.into_text())
        }
    }
}

fn write(page: &mut Page, token: &StoredToken) {
    page.field("Agent", &token.key.agent);
    page.field("Scheme", &token.scheme);
    page.field("Flow", flow(token.grant));
    page.field("Client", &token.key.client_id);
    page.field_if("Scopes", &token.granted.as_ref().unwrap_or(&token.key.scopes).to_string());
    match (token.expires_at, left(token)) {
        (Some(expires_at), 0) => page.field("Expired", expires_at),
        (Some(expires_at), _) => page.field("Expires", expires_at),
        (None, _) => page.field("Expires", "the server did not say when"),
    }
    page.field("Renewed", renewal(token));
}

/// A login without its tokens.
fn one(token: &StoredToken) -> Value {
    json!({
        "agent": token.key.agent.to_string(),
        "scheme": token.scheme,
        "flow": flow(token.grant),
        "clientId": token.key.client_id,
        "scopes": token.granted.as_ref().unwrap_or(&token.key.scopes).iter().collect::<Vec<_>>(),
        "obtainedAt": token.obtained_at.to_string(),
        "expiresAt": token.expires_at.map(|at| at.to_string()),
        "isExpired": token.expires_at.is_some() && left(token) == 0,
        "isRenewable": token.refresh_token.is_some(),
    })
}

fn left(token: &StoredToken) -> u64 {
    token.left(SystemClock.now()).unwrap_or_default().as_secs()
}

fn flow(grant: Grant) -> &'static str {
    match grant {
        Grant::DeviceCode => "device-code",
        Grant::ClientCredentials => "client-credentials",
    }
}

fn renewal(token: &StoredToken) -> &'static str {
    match (&token.refresh_token, token.grant) {
        (Some(_), _) => "by itself",
        (None, Grant::ClientCredentials) => "by itself, while A2ACLI_CLIENT_ID and A2ACLI_CLIENT_SECRET are set",
        (None, Grant::DeviceCode) => "by another login",
    }
}

fn store(session: &Session) -> Result<TokenStore, Failure> {
    session
        .way
        .store()
        .ok_or_else(|| Failure::local(LocalCode::Internal, "there is no home folder for logins").hint("set HOME"))
}

fn store_failure(error: &StoreError) -> Failure {
    Failure::local(LocalCode::Internal, told(error))
}

fn failure(session: &Session, error: &OAuthError) -> Failure {
    let failed = |code| Failure::local(code, told(error));
    let again = || format!("log in again with: {}", session.options.continuation.login(&session.options));
    let failure = match error {
        OAuthError::Scheme { .. } => failed(LocalCode::Usage)
            .hint("longhaul card get shows the security schemes; a token from elsewhere is given with A2ACLI_BEARER"),
        OAuthError::Endpoint { .. } => failed(LocalCode::Forbidden)
            .hint("--token-url says where to log in, whatever the card says; --any-interface trusts the card"),
        OAuthError::NotOffered { .. } => failed(LocalCode::Usage)
            .hint("--flow chooses another way to a token; --token-url and --device-url say where it is"),
        OAuthError::Invalid { .. } => failed(LocalCode::Usage),
        OAuthError::Unreachable { .. } => {
            failed(LocalCode::Unreachable).hint("the authorization server can't be reached: try again later")
        }
        OAuthError::Refused { .. } => failed(LocalCode::AuthFailed)
            .hint("check the client's id, its secret and the scopes with whoever runs the authorization server"),
        OAuthError::CodeExpired | OAuthError::Denied { .. } | OAuthError::LoginNeeded { .. } => {
            failed(LocalCode::AuthFailed).hint(again())
        }
        OAuthError::Store(error) => store_failure(error),
        _ => failed(LocalCode::AuthFailed),
    };
    session.redactor().failure(failure)
}
