//! `tigonctl spine route`: routes of a router on a card that another process drives.

use anyhow::{Context, Result};
use host_driver::status::{Request, RouteRequest};
use spine_linker::extensions::RouterReport;
use spine_linker::routes::{self, NextHop, Route};

use crate::cli::{Arguments, RouteAction};
use crate::output::Output;
use crate::rss::driver;

/// `tigonctl spine route`
pub(super) fn route(
    arguments: &Arguments,
    domain: Option<u32>,
    action: &RouteAction,
    output: &Output,
) -> Result<()> {
    let change = match action {
        RouteAction::Show => None,
        RouteAction::Add { prefix, hop } => {
            let hop: NextHop = hop.join(" ").parse()?;
            Some(RouteRequest::Add(Route::to(*prefix, hop).to_string()))
        }
        RouteAction::Del { prefix } => Some(RouteRequest::Delete(prefix.to_string())),
        RouteAction::Load { file } => {
            let named = || format!("routes {}", file.display());
            let text = std::fs::read_to_string(file).with_context(named)?;
            // Its lines are named here, beside the file.
            let routes = routes::parse(&text).with_context(named)?;
            let lines: Vec<String> = routes.iter().map(Route::to_string).collect();
            Some(RouteRequest::Replace(lines.join("\n")))
        }
    };
    let mut answer = driver(arguments)?.request(&Request::Routes { domain, change })?;
    let report: RouterReport = serde_json::from_value(answer["router"].take())?;
    let text = match action {
        RouteAction::Show => table(&report),
        _ => summary(&report),
    };
    output.result("routes", serde_json::to_value(&report)?, &text);
    Ok(())
}

fn table(report: &RouterReport) -> String {
    let mut lines = report.routes.clone();
    lines.push(summary(report));
    lines.join("\n")
}

fn summary(report: &RouterReport) -> String {
    format!(
        "domain {}: {} routes, {} of {} words",
        report.domain,
        report.routes.len(),
        report.words,
        report.room
    )
}
