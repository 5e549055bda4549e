//! What the figures were measured on.

use std::fs;
use std::process::Command;

/// Prints the machine, its load, and the versions of the tools that are compared.
pub(crate) fn print() {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(": ")).map_or("?", |(_, value)| value)
    };
    let processors = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    let virtual_machine = cpuinfo.contains(" hypervisor");
    println!(
        "machine: {} (family {}, model {}), {processors} CPUs{}",
        field("model name"),
        field("cpu family"),
        // "model\t" and not "model name".
        field("model\t"),
        if virtual_machine { ", a virtual machine" } else { "" },
    );
    println!("kernel:  {}", line_of("uname", "-r"));
    println!("user:    {}", line_of("id", "-un"));
    println!("load:    {}", fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    println!("date:    {}", line_of("date", "--iso-8601=minutes"));
    for tool in ["perf", "gdb"] {
        println!("{:<9}{}", format!("{tool}:"), line_of(tool, "--version"));
    }
}

/// Whether a tool can be run.
pub(crate) fn has(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn line_of(program: &str, argument: &str) -> String {
    match Command::new(program).arg(argument).output() {
        Ok(output) => {
            String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or("?").to_owned()
        }
        Err(_) => "not installed".to_owned(),
    }
}
