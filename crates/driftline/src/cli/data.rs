//! Data as a whole: made, looked at, checked, copied, tidied.

pub mod backup;
pub mod copy;
pub mod doctor;
pub mod gc;
pub mod init;
pub mod restore;
pub mod status;
pub mod verify;

use clap::Subcommand;
use std::process::ExitCode;

/// The commands of this room.
#[derive(Subcommand)]
pub enum DataCommand {
    Init(init::Args),
    Status(status::Args),
    Doctor(doctor::Args),
    Verify(verify::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    Copy(copy::Args),
    Gc(gc::Args),
}

/// Runs one of them.
pub fn run(command: DataCommand) -> anyhow::Result<ExitCode> {
    match command {
        DataCommand::Init(args) => init::run(args),
        DataCommand::Status(args) => status::run(args),
        DataCommand::Doctor(args) => doctor::run(args),
        DataCommand::Verify(args) => verify::run(args),
        DataCommand::Backup(args) => backup::run(args),
        DataCommand::Restore(args) => restore::run(args),
        DataCommand::Copy(args) => copy::run(args),
        DataCommand::Gc(args) => gc::run(args),
    }
}
