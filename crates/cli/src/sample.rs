//! `tavola config --sample`: a configuration file with every setting of `serve`, its meaning and its default.
//!
//! It is made of the flags themselves, so that a new flag is in it without a word here.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::ensure;
use clap::{Arg, Args, Command};

use crate::options::ServeOptions;

#[derive(Args, Debug)]
pub(crate) struct ConfigOptions {
    /// Print a configuration file with every setting, commented out, with its default
    #[arg(long)]
    sample: bool,
}

const HEAD: &str = "\
# Settings of `tavola serve --config FILE`. A flag wins over the environment, that over this file, that over the default.
# Everything is commented out: what stands here is what counts without it, or an example where nothing does.
# Keys of accounts do not belong here: see accounts-file.
";

/// The settings that are no flags.
const BEARER: &str = "
# Bearer tokens (OpenID Connect): whose are taken, and what their roles allow. Needs TLS. [default: off]
#[bearer]
#issuer = \"https://login.example.com/tenant/v2.0\"
# For whom tokens are made out, with or without a slash at the end. This one also stands for
# https://ACCOUNT.queue.core.windows.net and the like.
#audiences = [\"https://storage.azure.com\"]
# Where the issuer's keys are: a file, or a URL as jwks-url.
#jwks-file = \"/etc/tavola/jwks.json\"
# Take tokens over plain HTTP, for a server behind a proxy that ends TLS.
#allow-http = false
# Permission letters by role, added to Azure's own roles.
#[bearer.roles]
#\"Auditor\" = \"rl\"
";

pub(crate) fn run(options: &ConfigOptions) -> anyhow::Result<()> {
    ensure!(options.sample, "nothing to do: `tavola config --sample` prints a configuration file");
    std::io::stdout().lock().write_all(text().as_bytes())?;
    Ok(())
}

fn text() -> String {
    let mut text = HEAD.to_owned();
    for argument in settings() {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        let (value, _) = value(&argument, &help);
        let variable = argument.get_env().map(|name| name.to_string_lossy().into_owned());
        let variable = variable.map_or(String::new(), |name| format!(" ({name})"));
        let key = argument.get_long().unwrap_or_default();
        let _ = write!(text, "\n# {help}{variable}\n#{key} = {value}\n");
    }
    text + BEARER
}

/// The flags that are settings of a file.
fn settings() -> Vec<Arg> {
    let command = ServeOptions::augment_args(Command::new("serve"));
    let is_setting = |argument: &&Arg| !argument.is_hide_set() && argument.get_id() != "config";
    command.get_arguments().filter(is_setting).cloned().collect()
}

/// The value to show, and whether it is the default.
fn value(argument: &Arg, help: &str) -> (String, bool) {
    if !argument.get_action().takes_values() {
        return ("false".to_owned(), true);
    }
    let default = help.rsplit_once("[default: ").and_then(|(_, rest)| rest.strip_suffix(']'));
    match default {
        // No value, but what happens without one.
        Some("off" | "all") | None => (example(argument), false),
        Some(words) if words.contains(' ') => (example(argument), false),
        Some(number) if number.parse::<u64>().is_ok() => (number.to_owned(), true),
        Some(text) => (format!("{text:?}"), true),
    }
}

fn example(argument: &Arg) -> String {
    let name = argument.get_value_names().and_then(<[_]>::first).map_or("", |name| name.as_str());
    match name {
        "IP" => "\"127.0.0.1\"".to_owned(),
        "NAMES" => "[\"table\"]".to_owned(),
        "PORT" => "10010".to_owned(),
        "DIR" => "\"/var/lib/tavola\"".to_owned(),
        "FILE|-" => "\"/var/log/tavola/access.log\"".to_owned(),
        _ => format!("\"/etc/tavola/{}\"", argument.get_long().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::resolve;

    fn parse(text: &str) -> ServeOptions {
        toml::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    #[test]
    fn the_sample_as_printed_changes_nothing() {
        let (sample, nothing) = (parse(&text()), ServeOptions::default());
        assert_eq!(format!("{sample:?}"), format!("{nothing:?}"));
    }

    /// What the sample gives as defaults are the defaults.
    #[test]
    fn defaults_in_the_sample_are_the_defaults() {
        let mut settled = String::new();
        for argument in settings() {
            let help = argument.get_help().unwrap().to_string();
            let line =
                format!("{} = {}\n", argument.get_long().unwrap(), value(&argument, &help).0);
            assert!(text().contains(&format!("\n#{line}")), "{line}");
            if value(&argument, &help).1 {
                settled += &line;
            }
        }
        assert!(settled.lines().count() > 15, "{settled}");
        let resolved = |options: &ServeOptions| format!("{:#?}", resolve(options).unwrap());
        assert_eq!(resolved(&parse(&settled)), resolved(&ServeOptions::default()));
    }

    /// Every key by its long name and by every other name that help shows, as help says.
    #[test]
    fn settings_have_the_long_names_of_flags() {
        for argument in settings() {
            let help = argument.get_help().unwrap().to_string();
            let (value, _) = value(&argument, &help);
            let aliases = argument.get_visible_aliases().unwrap_or_default();
            for name in argument.get_long().into_iter().chain(aliases) {
                parse(&format!("{name} = {value}"));
            }
        }
    }

    #[test]
    fn examples_in_the_sample_can_be_used() {
        let comment = |line: &&str| line.starts_with('#') && !line.starts_with("# ");
        let all: Vec<_> = text().lines().filter(comment).map(|line| line[1..].to_owned()).collect();
        let options = parse(&all.join("\n"));
        assert_eq!(options.bearer.as_ref().unwrap().roles["Auditor"], "rl");
        assert_eq!(options.admin_port, Some(10010));
    }
}
