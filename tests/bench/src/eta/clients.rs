//! Clients that others have written, against the server through the engine and through the kernel:
//! none may see an error here that it does not see there.

use super::page;
use anyhow::{Context, Result, ensure};
use comfy_table::{Table, presets::UTF8_BORDERS_ONLY};
use serde::Serialize;
use std::path::Path;
use testbed::eta::Site;

/// A client, its command line in the namespace, and what it says of its errors.
struct Client {
    name: &'static str,
    line: &'static str,
    count: fn(&str) -> Option<Count>,
}

/// What a client says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Count {
    requests: u64,
    errors: u64,
}

/// One client against one server.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    arm: &'static str,
    client: &'static str,
    #[serde(flatten)]
    count: Count,
}

const CLIENTS: [Client; 5] = [
    Client {
        name: "curl",
        line: "curl --silent --max-time 20 --output /dev/null --write-out '%{http_code}\\n' \
               'http://10.77.0.1/1000?[1-200]' --next --silent --output /dev/null \
               --write-out '%{http_code}\\n' -H 'Connection: close' 'http://10.77.0.1/1000?[1-100]'",
        count: curl,
    },
    Client {
        name: "wrk",
        line: "wrk -t 2 -c 32 -d 2s http://10.77.0.1/1000",
        count: wrk,
    },
    Client {
        name: "httperf",
        line: "httperf --hog --server 10.77.0.1 --uri /1000 --rate 300 --num-conns 600 --timeout 5",
        count: httperf,
    },
    Client {
        name: "h2load --h1",
        line: "h2load --h1 -n 20000 -c 16 http://10.77.0.1/1000",
        count: h2load,
    },
    Client {
        name: "nmap -sT",
        line: "nmap -n -sT -Pn -p 1-1000 10.77.0.1",
        count: nmap,
    },
];

/// The number before a word, commas and signs aside.
fn before(text: &str, word: &str) -> Option<u64> {
    let words = || {
        text.split([' ', ',', '\n', '\t', '(', ')'])
            .filter(|one| !one.is_empty())
    };
    let found = words().zip(words().skip(1)).find(|(_, next)| *next == word);
    found.and_then(|(number, _)| number.parse().ok())
}

/// The number behind a word.
fn behind(text: &str, word: &str) -> Option<u64> {
    let (_, rest) = text.split_once(word)?;
    let number = rest.split_whitespace().next()?;
    number.trim_end_matches(',').parse().ok()
}

fn curl(said: &str) -> Option<Count> {
    let requests = said.lines().count() as u64;
    let good = said.lines().filter(|line| *line == "200").count() as u64;
    (requests > 0).then_some(Count {
        requests,
        errors: requests - good,
    })
}

fn wrk(said: &str) -> Option<Count> {
    // The line of socket errors is there only if there were some.
    let line = said.lines().find(|line| line.contains("Socket errors:"));
    let kinds = ["connect", "read", "write", "timeout"];
    let errors = line.map_or(0, |line| {
        kinds.iter().filter_map(|kind| behind(line, kind)).sum()
    });
    Some(Count {
        requests: before(said, "requests")?,
        errors: errors + behind(said, "Non-2xx or 3xx responses:").unwrap_or(0),
    })
}

fn httperf(said: &str) -> Option<Count> {
    Some(Count {
        requests: behind(said, "Total: connections")?,
        errors: behind(said, "Errors: total")?,
    })
}

fn h2load(said: &str) -> Option<Count> {
    let line = said.lines().find(|line| line.starts_with("requests:"))?;
    let requests = before(line, "total")?;
    Some(Count {
        requests,
        errors: requests - before(line, "succeeded")?,
    })
}

fn nmap(said: &str) -> Option<Count> {
    let closed = before(said, "closed")?;
    let open = said
        .lines()
        .filter(|line| line.contains("/tcp open"))
        .count() as u64;
    Some(Count {
        requests: 1000,
        errors: 1000 - (closed + open).min(1000) + u64::from(open != 1),
    })
}

/// Runs them all against both servers, and prints what they say.
///
/// # Errors
/// If a client says nothing that is understood, or sees errors through the engine only.
pub fn run(root: &Path) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for arm in ["epoll", "dusi"] {
        let site = match arm {
            "epoll" => Site::start_kernel(root)?,
            _ => Site::start("adaptive", root)?,
        };
        super::requests::first_answer(&site)?;
        for client in CLIENTS {
            let mut shell = site.namespace.command("sh");
            let ran = shell.args(["-c", client.line]).output()?;
            let said = String::from_utf8_lossy(&ran.stdout);
            let count = (client.count)(&said);
            let count = count.with_context(|| format!("{}: {said}", client.name))?;
            rows.push(Row {
                arm,
                client: client.name,
                count,
            });
        }
    }
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header(["arm", "client", "requests", "errors"]);
    for Row { arm, client, count } in &rows {
        let numbers = [count.requests, count.errors].map(|number| number.to_string());
        table.add_row(
            [arm.to_string(), client.to_string()]
                .into_iter()
                .chain(numbers),
        );
    }
    println!("{table}");
    let (kernel, engine) = rows.split_at(CLIENTS.len());
    for (kernel, engine) in kernel.iter().zip(engine) {
        ensure!(
            engine.count.errors == 0 || kernel.count.errors > 0,
            "{} sees errors through the engine only",
            engine.client
        );
    }
    Ok(rows)
}

/// The rows as the page shows them.
pub fn summary(rows: &[Row]) -> Vec<page::Client> {
    let row = |row: &Row| page::Client {
        arm: row.arm.to_owned(),
        client: row.client.to_owned(),
        requests: row.count.requests,
        errors: row.count.errors,
    };
    rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_understood() {
        let count = |requests, errors| Some(Count { requests, errors });
        assert_eq!(curl("200\n200\n000\n"), count(3, 1));
        let good = "  2 threads and 32 connections\n  229691 requests in 3.00s, 237.01MB read\n";
        assert_eq!(wrk(good), count(229_691, 0));
        let bad = "  9 requests in 3.00s, 2MB read\n  Socket errors: connect 1, read 2, write 0, \
                   timeout 4\n  Non-2xx or 3xx responses: 5\n";
        assert_eq!(wrk(bad), count(9, 12));
        let said = "Total: connections 900 requests 899 replies 899 test-duration 3.010 s\n\
                    Errors: total 1 client-timo 0 socket-timo 0 connrefused 1 connreset 0\n";
        assert_eq!(httperf(said), count(900, 1));
        let said = "finished in 338.86ms, 59021.60 req/s, 60.90MB/s\nrequests: 20000 total, 20000 \
                    started, 20000 done, 19998 succeeded, 2 failed, 0 errored, 0 timeout\n";
        assert_eq!(h2load(said), count(20_000, 2));
        let said = "Not shown: 999 closed tcp ports (conn-refused)\nPORT   STATE SERVICE\n\
                    80/tcp open  http\n";
        assert_eq!(nmap(said), count(1000, 0));
        let said = "Not shown: 990 closed tcp ports (conn-refused), 9 filtered tcp ports\n\
                    80/tcp open  http\n";
        assert_eq!(nmap(said), count(1000, 9));
        assert_eq!(h2load("nothing"), None);
    }
}
