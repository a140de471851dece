//! `driftline connection`: named uses of connectors, with their settings.

mod history;
mod show;

use crate::catalog::kind_of;
use crate::cli::report_change;
use crate::place::Place;
use crate::verbs::administration::connections::flags::ConnectionFlags;
use crate::verbs::administration::connections::{
    ChangeConnection, ConnectionName, ConnectionRequest, ConnectionsRequest,
};
use clap::{Args as ClapArgs, Subcommand};
use std::process::ExitCode;
use store::tables::connections::ConnectionKind;

/// Define where documents come from and where they go: named uses of connectors
#[derive(ClapArgs)]
#[command(after_help = "\
Example: driftline connection create copy --connector files --kind output directory=/srv/out
Example: driftline connection edit web --throttle '^www\\.example\\.com$=12/min,conns=2'")]
pub struct Args {
    #[command(subcommand)]
    action: ConnectionCommand,
}

#[derive(Subcommand)]
enum ConnectionCommand {
    /// List all connections
    #[command(after_help = "Example: driftline connection list --kind output")]
    List(ConnectionListArgs),
    /// Show a connection with its settings
    #[command(after_help = "Example: driftline connection show web")]
    Show(ConnectionOneArgs),
    /// Create a connection
    #[command(after_help = "\
Example: driftline connection create copy --connector files --kind output directory=/srv/out")]
    Create(ConnectionCreateArgs),
    /// Change a connection; what is not given stays
    #[command(after_help = "\
Example: driftline connection edit web --throttle '^www\\.example\\.com$=12/min,conns=2,kb=100'")]
    Edit(ConnectionEditArgs),
    /// Delete a connection that no job and no other connection uses
    #[command(after_help = "Example: driftline connection delete copy")]
    Delete(ConnectionOneArgs),
    /// Check whether a connection can be used, and say why if not
    #[command(after_help = "Example: driftline connection check copy")]
    Check(ConnectionOneArgs),
    /// Send every document to an output again, as the next runs look at it
    ///
    /// For an output that has lost what it had. Nothing is fetched again for it.
    #[command(after_help = "Example: driftline connection reindex copy")]
    Reindex(ConnectionOneArgs),
    /// Forget what an output has, without telling the output
    ///
    /// For an output that was emptied, or is not to be cleaned up: documents that leave are
    /// not removed from it any more, and what the next runs look at is added anew.
    #[command(after_help = "Example: driftline connection forget copy")]
    Forget(ConnectionOneArgs),
    /// Clear the history of a repository connection, all of it
    ///
    /// Documents, queue and outputs stay as they are. What is older than the connection keeps
    /// its history is forgotten without this.
    #[command(after_help = "Example: driftline connection clear-history web")]
    ClearHistory(ConnectionOneArgs),
    /// Take the settings away from connections whose key is lost
    ///
    /// Settings are sealed where they are stored. If the key is lost, nobody can read them any
    /// more; after this the connections can be given settings again.
    #[command(after_help = "Example: driftline connection forget-sealed")]
    ForgetSealed(AllArgs),
}

#[derive(ClapArgs)]
struct AllArgs {
    #[command(flatten)]
    place: Place,
}

#[derive(ClapArgs)]
struct ConnectionListArgs {
    #[command(flatten)]
    place: Place,
    /// Only connections of this kind
    #[arg(long, value_name = "KIND", value_parser = kind_of)]
    kind: Option<ConnectionKind>,
}

#[derive(ClapArgs)]
struct ConnectionOneArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    one: ConnectionName,
}

#[derive(ClapArgs)]
struct ConnectionCreateArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    one: ConnectionName,
    /// The connector that it uses; `driftline connector list` lists them
    #[arg(long, value_name = "NAME")]
    connector: String,
    #[command(flatten)]
    flags: ConnectionFlags,
}

#[derive(ClapArgs)]
struct ConnectionEditArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    one: ConnectionName,
    /// The new name
    #[arg(long, value_name = "NAME")]
    rename: Option<String>,
    #[command(flatten)]
    flags: ConnectionFlags,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (place, request) = match args.action {
        ConnectionCommand::List(args) => {
            let kind = args.kind.map(|kind| kind.name().to_owned());
            let request = ConnectionsRequest { kind, ..ConnectionsRequest::default() };
            return show::list(&args.place, request);
        }
        ConnectionCommand::Show(args) => return show::show(&args.place, request_for(args.one)),
        ConnectionCommand::Check(args) => {
            let request = ConnectionsRequest { opens: true, ..request_for(args.one) };
            return show::check(&args.place, request);
        }
        ConnectionCommand::Create(ConnectionCreateArgs { place, one, connector, flags }) => {
            (place, ConnectionRequest::Create { one, connector, flags })
        }
        ConnectionCommand::Edit(ConnectionEditArgs { place, one, rename, flags }) => {
            (place, ConnectionRequest::Edit { one, rename, flags })
        }
        ConnectionCommand::Delete(ConnectionOneArgs { place, one }) => {
            (place, ConnectionRequest::Delete { one })
        }
        ConnectionCommand::Reindex(ConnectionOneArgs { place, one }) => {
            (place, ConnectionRequest::Reindex { one })
        }
        ConnectionCommand::Forget(ConnectionOneArgs { place, one }) => {
            (place, ConnectionRequest::Forget { one })
        }
        ConnectionCommand::ForgetSealed(AllArgs { place }) => {
            (place, ConnectionRequest::ForgetSealed {})
        }
        ConnectionCommand::ClearHistory(ConnectionOneArgs { place, one }) => {
            return history::clear(&place, one);
        }
    };
    let changed = place.change::<ChangeConnection>(request)?;
    report_change(&place, &changed, "nothing has changed: it was so already")
}

fn request_for(one: ConnectionName) -> ConnectionsRequest {
    ConnectionsRequest { kind: one.kind, name: Some(one.name), opens: false }
}
