//! Flags of the form `--name=value` or `--name`.

use std::fmt::Display;
use std::str::FromStr;

/// The program's arguments. Asking for a flag also declares it; see [`Flags::finish`].
#[derive(Debug)]
pub struct Flags {
    given: Vec<(String, String)>,
    known: Vec<&'static str>,
}

impl Flags {
    /// Reads the program's arguments.
    pub fn from_args() -> Self {
        let given = std::env::args()
            .skip(1)
            .map(|argument| {
                let Some(flag) = argument.strip_prefix("--") else {
                    refuse(&format!("flags are --name=value, not {argument:?}"));
                };
                let (name, value) = flag.split_once('=').unwrap_or((flag, "true"));
                (name.to_owned(), value.to_owned())
            })
            .collect();
        Self { given, known: Vec::new() }
    }

    /// The value of `--name=value`, or `default` where it is not given; ends the program with
    /// exit status 2 where it does not parse.
    pub fn get<T>(&mut self, name: &'static str, default: T) -> T
    where
        T: FromStr,
        T::Err: Display,
    {
        self.known.push(name);
        match self.given.iter().rev().find(|(given, _)| given == name) {
            None => default,
            Some((_, value)) => {
                value.parse().unwrap_or_else(|error| refuse(&format!("--{name}={value}: {error}")))
            }
        }
    }

    /// Refuses flags that nobody asked for, with exit status 2.
    pub fn finish(self) {
        if let Some((name, _)) = self.given.iter().find(|(name, _)| !self.known.contains(&&**name))
        {
            refuse(&format!("no flag --{name}; there are: --{}", self.known.join(", --")));
        }
    }
}

fn refuse(message: &str) -> ! {
    eprintln!("{message}");
    std::process::exit(2);
}
