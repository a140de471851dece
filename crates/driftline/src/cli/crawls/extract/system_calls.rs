//! The system calls that reading a document needs, as a seccomp filter.
//!
//! The list is what `strace` shows after the limits are set, over documents of every kind, a
//! panic, an allocation that fails and a stack that overflows, with what the C library and the
//! allocator do instead on other days. Two filters are laid over each other, of which the
//! stricter decides: one refuses whatever is not on the list (EPERM), so that a library that
//! asks for something odd gets no for an answer and goes on; the other ends the process for
//! calls that no library makes on the way and an attack must make (SIGSYS).

use anyhow::ensure;
use nix::libc;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;
use std::env::consts::ARCH;

/// Architectures whose processes were looked at.
const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];

/// Reading, writing, memory and an end.
const ALLOWED: [i64; 22] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_lseek,
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_clock_gettime,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// What only code does that has taken the reader over: programs, connections, the memory of
/// other processes, namespaces, and doors into the kernel.
const ENDED: [i64; 19] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_bpf,
    libc::SYS_io_uring_setup,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_init_module,
    libc::SYS_finit_module,
];

/// Lets this process make the calls that reading needs, and no others.
pub fn restrict() -> anyhow::Result<()> {
    ensure!(ARCHITECTURES.contains(&ARCH), "there is no list of system calls for {ARCH} yet");
    // Both are made before the first holds, which lets the second by.
    let (ending, refusing) = (ending()?, refusing()?);
    apply_filter(&ending)?;
    Ok(apply_filter(&refusing)?)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn ending() -> Result<BpfProgram, BackendError> {
    let rules = ENDED.into_iter().map(|call| (call, Vec::new())).collect();
    filter(rules, SeccompAction::Allow, SeccompAction::KillProcess)
}

fn refusing() -> Result<BpfProgram, BackendError> {
    let mut rules: Rules = ALLOWED.into_iter().map(|call| (call, Vec::new())).collect();
    // Memory that can be run is what an attack writes its own code into.
    let executable = SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64);
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(call, vec![only(2, executable.clone(), 0)?]);
    }
    // A process that gives up sends itself a signal, and nobody else.
    let own = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, vec![only(0, SeccompCmpOp::Eq, own)?]);
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    filter(rules, refused, SeccompAction::Allow)
}

/// A call of which an argument compares so.
fn only(argument: u8, compares: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    let length = SeccompCmpArgLen::Dword;
    SeccompRule::new(vec![SeccompCondition::new(argument, length, compares, value)?])
}

fn filter(
    rules: Rules,
    others: SeccompAction,
    listed: SeccompAction,
) -> Result<BpfProgram, BackendError> {
    SeccompFilter::new(rules, others, listed, TargetArch::try_from(ARCH)?)?.try_into()
}
