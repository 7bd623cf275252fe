//! `tigonctl rss`: shows and sets the choice of receive queues, and explains the queue of a flow.

use anyhow::{Context, Result, bail};
use host_driver::nic::Classification;
use host_driver::rss::words::{self, RssWords};
use host_driver::rss::{Explanation, Flow, Reason, Rss};
use host_driver::status::Request;
use serde_json::{Value, json};

use super::cli::{Arguments, ExplainOptions, RssAction, RssSetting};
use super::look::Source;
use super::output::Output;

/// Entries of the indirection table on a line.
const LINE: usize = 32;

/// `tigonctl rss`
pub fn rss(arguments: &Arguments, action: &RssAction, output: &Output) -> Result<()> {
    match action {
        RssAction::Show => {
            let words = settings(&mut driver(arguments)?)?;
            show(&words, output)
        }
        RssAction::Set(setting) => {
            let mut source = driver(arguments)?;
            let wanted = changed(settings(&mut source)?, setting)?;
            let mut answer = source.request(&Request::SetRss { rss: wanted })?;
            show(&serde_json::from_value(answer["rss"].take())?, output)
        }
        RssAction::Explain(options) => explain(arguments, options, output),
    }
}

/// The driver that was attached to.
pub fn driver(arguments: &Arguments) -> Result<Source> {
    if arguments.attach.is_none() {
        bail!("which driver? Name its status socket with --attach PATH (bridge --status)");
    }
    Source::open(arguments)
}

fn settings(source: &mut Source) -> Result<RssWords> {
    let mut answer = source.request(&Request::Rss)?;
    Ok(serde_json::from_value(answer["rss"].take())?)
}

/// The settings with one of them changed; all are judged before the driver is asked.
fn changed(mut rss: RssWords, setting: &RssSetting) -> Result<RssWords> {
    match setting {
        RssSetting::Classifier { name } => rss.classifier.clone_from(name),
        RssSetting::Key { key } => rss.key.clone_from(key),
        RssSetting::Table { entries } => {
            rss.table = words::table_of(entries, rss.queues)?.entries().to_vec();
        }
        RssSetting::Fields { names } => rss.fields = list(names),
        RssSetting::Equal => rss.table = (0..rss.queues).cycle().take(rss.table.len()).collect(),
        RssSetting::Weights { weights } => {
            rss.table = words::weights(weights, rss.queues)?.entries().to_vec();
        }
    }
    let checked = rss.classification()?;
    Ok(RssWords::of(&checked, rss.queues))
}

/// Names with commas between them.
fn list(names: &str) -> Vec<String> {
    let names = names.split(',').map(str::trim);
    let names = names.filter(|name| !name.is_empty() && *name != "none");
    names.map(str::to_owned).collect()
}

fn show(rss: &RssWords, output: &Output) -> Result<()> {
    let mut lines = vec![
        format!("{} queues, classifier {}", rss.queues, rss.classifier),
        format!("fields  {}", rss.fields.join(", ")),
        format!("key     {}", rss.key),
    ];
    let shares = (0..rss.queues).map(|queue| {
        let entries = rss.table.iter().filter(|entry| **entry == queue).count();
        format!("{queue}: {entries}")
    });
    let shares: Vec<String> = shares.collect();
    lines.push(format!(
        "table   entries of each queue: {}",
        shares.join(", ")
    ));
    for (row, entries) in rss.table.chunks(LINE).enumerate() {
        let entries: Vec<String> = entries.iter().map(ToString::to_string).collect();
        lines.push(format!("{:>7} {}", row * LINE, entries.join(" ")));
    }
    output.result("rss", serde_json::to_value(rss)?, &lines.join("\n"));
    Ok(())
}

/// The settings that a question is about.
fn asked(arguments: &Arguments, options: &ExplainOptions) -> Result<Rss> {
    let mut rss = if arguments.attach.is_some() {
        settings(&mut driver(arguments)?)?
    } else {
        let Some(queues) = options.queues else {
            bail!("how many queues? Name them with --queues NUMBER or a driver with --attach PATH");
        };
        RssWords::of(&Classification::default(), queues)
    };
    if let Some(queues) = options.queues.filter(|queues| *queues != rss.queues) {
        rss = RssWords::of(&Classification::default(), queues);
    }
    if let Some(classifier) = &options.classifier {
        rss.classifier.clone_from(classifier);
    }
    if let Some(key) = &options.key {
        rss.key.clone_from(key);
    }
    if let Some(fields) = &options.fields {
        rss.fields = list(fields);
    }
    // What there is to be said of the number comes before the table that rests on it.
    Classification::default().rss(rss.queues)?;
    if let Some(table) = &options.table {
        rss.table = words::table_of(table, rss.queues)?.entries().to_vec();
    }
    Ok(rss.classification()?.rss(rss.queues)?)
}

fn explain(arguments: &Arguments, options: &ExplainOptions, output: &Output) -> Result<()> {
    let rss = asked(arguments, options)?;
    let mut flow = Flow {
        protocol: options.protocol.into(),
        source: options.source,
        destination: options.destination,
    };
    if let Some(queue) = options.to {
        let ports = flow.source.port()..=u16::MAX;
        let first = flow.source.port();
        let port = rss.source_port(&flow, queue, ports)?;
        let port = port.with_context(|| {
            let why = rss
                .explain(&flow)
                .map(|explanation| explanation.to_string());
            let why = why.unwrap_or_default();
            format!("no source port from {first} on leads to queue {queue}; {first}: {why}")
        })?;
        flow.source.set_port(port);
    }
    let explanation = rss.explain(&flow)?;
    let text = format!("{} > {}: {explanation}", flow.source, flow.destination);
    output.result("explanation", value(&flow, &explanation), &text);
    Ok(())
}

fn value(flow: &Flow, explanation: &Explanation) -> Value {
    let mut value = json!({
        "source": flow.source,
        "destination": flow.destination,
        "queue": explanation.queue,
        "why": explanation.to_string(),
    });
    if let Reason::Hash {
        hash_type,
        hash,
        entry,
        ..
    } = explanation.reason
    {
        value["hash_type"] = format!("{hash_type:?}").into();
        value["hash"] = hash.into();
        value["entry"] = entry.into();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> RssWords {
        RssWords::of(&Classification::default(), 4)
    }

    #[test]
    fn one_setting_changes_and_the_others_stay() {
        let weights = RssSetting::Weights {
            weights: "1,0,0,1".to_owned(),
        };
        let rss = changed(open(), &weights).expect("good weights");
        assert_eq!((rss.table[0], rss.table[127]), (0, 3));
        assert_eq!(rss.key, open().key);
        let equal = changed(rss, &RssSetting::Equal).expect("always");
        assert_eq!(equal, open());
        let key = RssSetting::Key {
            key: "symmetric".to_owned(),
        };
        let rss = changed(open(), &key).expect("a good key");
        assert_eq!(&rss.key[..8], "6d5a6d5a");
        let fields = RssSetting::Fields {
            names: "none".to_owned(),
        };
        assert!(changed(open(), &fields).expect("no hash").fields.is_empty());
    }

    #[test]
    fn what_the_card_would_refuse_never_reaches_the_driver() {
        let table = RssSetting::Table {
            entries: "0,1,2,4".to_owned(),
        };
        let error = changed(open(), &table).expect_err("no queue 4").to_string();
        assert_eq!(error, "table entry 3 names a queue that is not open");
        let three = RssWords::of(&Classification::default(), 3);
        let name = "source-address".to_owned();
        let error = changed(three, &RssSetting::Classifier { name }).expect_err("three queues");
        assert!(error.to_string().contains("power of two"), "{error}");
    }
}
