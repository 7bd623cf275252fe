//! The screen of `tigonctl top`, which fits any figures into 80 columns.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::widgets::{Block, Gauge, Paragraph, Row, Table};

use super::fit::fitted;
use super::looks::{ALL, Activity, ENOUGH, Seen, folded};
use super::{View, extensions};

/// Draws a view.
pub fn draw(frame: &mut Frame<'_>, view: &View) {
    let [head, loads, body, below] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(4),
        Constraint::Min(8),
        Constraint::Length(extensions::height(view.extensions.as_ref())),
    ])
    .areas(frame.area());
    let [input, output] = view.rates.map(|(frames, megabits)| {
        // As wide as a full link's.
        let decimals = usize::from(megabits < 999.5);
        format!("{}/s {megabits:.decimals$} Mb/s", figure(frames))
    });
    let line = format!(
        "tigonctl top  {:.0} s  in {input}  out {output}  q ends",
        view.at
    );
    frame.render_widget(Paragraph::new(line).bold(), head);
    draw_loads(frame, loads, view);
    if let Some(loaded) = &view.extensions {
        extensions::draw(frame, below, loaded);
    }
    let [handlers, right] =
        Layout::horizontal([Constraint::Min(20), Constraint::Length(RIGHT)]).areas(body);
    draw_handlers(frame, handlers, view);
    let right = draw_queues(frame, right, view);
    let [rings, drops] = Layout::vertical([Constraint::Length(8), Constraint::Min(3)]).areas(right);
    let rows = view.rings.iter().map(|ring| {
        let filled = (ring.fill * BAR).div_ceil(ring.size.max(1)).min(BAR) as usize;
        let bar = "#".repeat(filled);
        Row::new([
            ring.name.to_owned(),
            bar,
            format!("{:>4}/{}", ring.fill, ring.size),
        ])
    });
    let widths = [
        Constraint::Length(12),
        Constraint::Length(BAR as u16),
        Constraint::Min(8),
    ];
    let table = Table::new(rows, widths).block(Block::bordered().title("rings"));
    frame.render_widget(table, rings);
    let rows = view
        .drops
        .iter()
        .map(|(name, count)| Row::new([name.clone(), column(*count as f64)]));
    let table = Table::new(rows, [Constraint::Min(16), Constraint::Length(FIGURE)])
        .block(Block::bordered().title("frames dropped"));
    frame.render_widget(table, drops);
}

/// Draws the receive queues, if there are any, at the bottom; returns the area above them.
fn draw_queues(frame: &mut Frame<'_>, area: Rect, view: &View) -> Rect {
    if view.queues.is_empty() {
        return area;
    }
    // Borders and the heading.
    let height = view.queues.len() as u16 + 3;
    let [rest, queues] =
        Layout::vertical([Constraint::Min(11), Constraint::Length(height)]).areas(area);
    let head = Row::new(["q", "frames/s", " fill", " drops", ""]).bold();
    let rows = view.queues.iter().map(|(queue, rates)| {
        let state = match (queue.served, queue.polled) {
            (false, _) => "!",
            (true, true) => "p",
            (true, false) => "a",
        };
        Row::new([
            queue.number.to_string(),
            format!("{:>8.0}", rates.frames),
            format!("{:>5}", queue.fill),
            format!("{:>6}", queue.card.dropped()),
            state.to_owned(),
        ])
    });
    let widths = [1, 8, 5, 6, 1].map(Constraint::Length);
    let block = Block::bordered().title("queues: armed, polled, !");
    let table = Table::new(rows, widths).header(head).block(block);
    frame.render_widget(table, queues);
    rest
}

/// Columns of the rings and drops; of 80, this leaves room for custom counters.
const RIGHT: u16 = 31;
/// Columns of a ring's bar.
const BAR: u32 = 7;
/// Columns of a figure in a table.
const FIGURE: u16 = 10;
/// Columns of a share of a CPU's time: 100.0.
const PART: u16 = 5;

/// A figure in at most [`FIGURE`] columns.
fn figure(value: f64) -> String {
    let plain = format!("{value:.0}");
    if plain.len() <= usize::from(FIGURE) {
        plain
    } else {
        format!("{value:.3e}")
    }
}

/// A figure at the right of its column.
fn column(value: f64) -> String {
    format!("{:>width$}", figure(value), width = usize::from(FIGURE))
}

fn draw_handlers(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let samples = view.seen.as_ref().map(Seen::samples);
    let title = match samples {
        Some([a, b]) => format!("each CPU's time, by {a} and {b} samples"),
        None => "handlers".to_owned(),
    };
    let part = samples.map_or(0, |_| PART);
    let widths = [0, part, part, FIGURE].map(Constraint::Length);
    let [_, widths @ ..] = widths;
    let block = Block::bordered().title(title);
    let inner = block.inner(area);
    let spaces = 3;
    let name = inner.width.saturating_sub(2 * part + FIGURE + spaces);
    let head = Row::new(match samples {
        Some(_) => ["handler", "  A %", "  B %", "    runs/s"],
        None => ["handler", "", "", "    runs/s"],
    });
    let fitted = |text: &str| fitted(text, usize::from(name));
    let cell = |row: &Activity, cpu: usize| match (&view.seen, row.parts[cpu]) {
        (_, Some(part)) => format!("{:5.1}", f64::from(part) * 100.0 / f64::from(ALL)),
        (Some(seen), None) if !seen.is_enough(cpu) => "    -".to_owned(),
        _ => String::new(),
    };
    let room = usize::from(inner.height).saturating_sub(1 + view.custom_counters.len());
    let rows = folded(view.handlers.clone(), room.max(3)).into_iter();
    let rows = rows.map(|row| {
        let runs = row.runs.map_or(String::new(), column);
        Row::new([fitted(&row.name), cell(&row, 0), cell(&row, 1), runs])
    });
    let custom = view.custom_counters.iter().map(|(name, rate, count)| {
        let name = fitted(&format!("{name}: {}", figure(*count as f64)));
        Row::new([name, String::new(), String::new(), column(*rate)])
    });
    let widths = std::iter::once(Constraint::Length(name)).chain(widths);
    let table = Table::new(rows.chain(custom), widths).header(head.bold());
    frame.render_widget(table.block(block), area);
}

fn draw_loads(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let title = match view.seen {
        Some(_) => "load: all but idle",
        None => "load, against the idlest interval",
    };
    let block = Block::bordered().title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let rows: [Rect; 2] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(1)]).areas(inner);
    for (cpu, (name, row)) in ["A", "B"].into_iter().zip(rows).enumerate() {
        let (ratio, label) = load(view, cpu);
        let gauge = Gauge::default()
            .gauge_style(Style::new().green())
            .ratio(ratio.clamp(0.0, 1.0))
            .label(format!("CPU {name}: {label}"));
        frame.render_widget(gauge, row);
    }
}

/// A CPU's load and its label.
fn load(view: &View, cpu: usize) -> (f64, String) {
    if let Some(seen) = &view.seen {
        let samples = seen.samples()[cpu];
        return match seen.busy(cpu) {
            Some(busy) => {
                let busy = f64::from(busy) / f64::from(ALL);
                (busy, format!("{:.1} %", busy * 100.0))
            }
            None if samples >= ENOUGH => (0.0, "not running".to_owned()),
            None => (0.0, format!("-, {samples} of {ENOUGH} samples")),
        };
    }
    let (idle, busy) = view.cpus[cpu];
    if idle == 0.0 && busy == 0.0 {
        return (0.0, "no idle turns seen".to_owned());
    }
    let label = format!("{:3.0} %, {idle:.0} idle turns a second", busy * 100.0);
    (busy, label)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::top::looks::tests::seen;
    use crate::top::tests::sample;
    use crate::top::{Ring, Watch, activities};
    use host_driver::nic::QueueReport;
    use host_driver::profile::Owner;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use tigon2_chip::Cpu;

    fn screen(view: &View) -> String {
        sized(view, 76, 18)
    }

    pub(in crate::top) fn sized(view: &View, columns: u16, rows: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
        terminal.draw(|frame| draw(frame, view)).expect("it draws");
        terminal.backend().to_string()
    }

    /// An idle second, then a busy one in which frames were dropped.
    #[test]
    fn the_screen_shows_load_rings_rates_and_drops() {
        let mut watch = Watch::default();
        assert!(watch.next(sample(0.0, 5, 100, 7)).is_none());
        let idle = watch.next(sample(1.0, 1_000_005, 100, 7)).expect("a view");
        insta::assert_snapshot!("idle", screen(&idle));
        let busy = watch
            .next(sample(2.0, 1_250_005, 50_100, 10))
            .expect("a view");
        assert_eq!(
            busy.drops,
            [("NoReceiveBd".to_owned(), 3)],
            "since the first look"
        );
        insta::assert_snapshot!("busy", screen(&busy));
    }

    /// One is polled, and nobody serves the other.
    #[test]
    fn the_screen_shows_receive_queues() {
        let queue = |number: u8, frames| {
            let mut report = QueueReport {
                number,
                served: number == 0,
                polled: number == 0,
                entries: 256,
                fill: 200,
                ..QueueReport::default()
            };
            report.card.frames = frames;
            report.card.no_buffer = 77;
            report
        };
        let mut watch = Watch::default();
        let mut before = sample(0.0, 5, 100, 7);
        before.queues = vec![queue(0, 0), queue(1, 0)];
        watch.next(before);
        let mut now = sample(1.0, 250_005, 50_100, 7);
        now.queues = vec![queue(0, 40_000), queue(1, 10_000)];
        let view = watch.next(now).expect("a view");
        insta::assert_snapshot!("queues", sized(&view, 76, 24));
    }

    /// With the ELF file: loads of handlers, and of a function that several call. A firmware
    /// with counts of its own shows those.
    #[test]
    fn the_screen_shows_what_each_handler_takes() {
        let mut watch = Watch::default();
        watch.next(sample(0.0, 5, 100, 7));
        let mut busy = sample(1.0, 250_005, 50_100, 7);
        let handler = |name: &str| Some(Owner::Handler(name.into()));
        busy.seen = Some(seen([
            (Cpu::A, Some(Owner::Idle), 400),
            (Cpu::A, handler("ReceiveComplete"), 1000),
            (Cpu::A, Some(Owner::Function("dma::queue".into())), 200),
            (Cpu::B, None, 1600),
        ]));
        busy.counts.insert("custom_counters pings".into(), 40);
        let view = watch.next(busy).expect("a view");
        insta::assert_snapshot!("loads", screen(&view));
    }

    /// In the first seconds the CPUs' time is not shown.
    #[test]
    fn too_few_samples_are_said() {
        let mut watch = Watch::default();
        watch.next(sample(0.0, 5, 100, 7));
        let mut busy = sample(1.0, 250_005, 50_100, 7);
        busy.seen = Some(seen([
            (Cpu::A, Some(Owner::Idle), 159),
            (Cpu::A, Some(Owner::Handler("Timer".into())), 1),
            (Cpu::B, Some(Owner::Idle), 160),
        ]));
        let view = watch.next(busy).expect("a view");
        insta::assert_snapshot!("few", screen(&view));
    }

    /// Every figure at its widest on a terminal of 80 columns, and more handlers than rows:
    /// no digit is missing, and the parts of each CPU's time add up to 100 %.
    #[test]
    fn the_widest_figures_have_room() {
        let most = f64::from(u32::MAX);
        let names = [
            "UpdateReceiveReturnProducer",
            "ReceiveComplete",
            "DmaReadComplete",
        ];
        let names = names.into_iter().map(str::to_owned);
        let names: Vec<String> = names.chain((0..20).map(|n| format!("Other{n}"))).collect();
        let mut samples = Seen::default();
        for (n, name) in names.iter().enumerate().skip(3) {
            let owner = Some(Owner::Handler(name.clone()));
            samples.add(&seen([(Cpu::A, owner, 7 + n as u32)]));
        }
        samples.add(&seen([
            (Cpu::A, Some(Owner::Idle), 100),
            (Cpu::A, Some(Owner::Handler(names[0].clone())), 997),
            (Cpu::B, Some(Owner::Handler(names[1].clone())), 1600),
        ]));
        let runs = names.iter().map(|name| (name.clone(), most));
        let view = View {
            at: 86_400.0,
            cpus: [(most, 1.0); 2],
            handlers: activities(runs, Some(&samples)),
            seen: Some(samples),
            custom_counters: vec![("twelveletter".to_owned(), most, u64::from(u32::MAX))],
            rates: [(1_488_095.0, 1000.0); 2],
            drops: vec![("NoStandardBuffer".to_owned(), u64::MAX)],
            rings: vec![Ring {
                name: "mac transmit",
                producer: 0,
                consumer: 0,
                fill: 512,
                size: 512,
            }],
            queues: Vec::new(),
            extensions: None,
        };
        let text = sized(&view, 80, 24);
        insta::assert_snapshot!("widest", text);
        assert_eq!(text.matches("1488095/s 1000 Mb/s").count(), 2);
        assert!(text.contains("q ends") && text.contains(" 512/512"));
        assert!(text.contains("twelveletter: 4294967295"), "{text}");
        // Rows of a CPU's time: their last three figures are of A, of B and the runs.
        let rows = text
            .lines()
            .skip_while(|line| !line.contains("runs/s"))
            .skip(1);
        let rows = rows.take_while(|line| !line.starts_with("\"└"));
        let (mut a, mut b) = (0.0, 0.0);
        for line in rows {
            let cells: Vec<char> = line.chars().skip(2).take(47).collect();
            let cell = |from: usize, to: usize| -> String {
                cells[from..to].iter().collect::<String>().trim().to_owned()
            };
            a += cell(25, 30).parse().unwrap_or(0.0);
            b += cell(31, 36).parse().unwrap_or(0.0);
            let runs = cell(37, 47);
            assert!(
                runs.is_empty() || runs.len() == 10 || runs == "4.295e10",
                "{line}"
            );
        }
        assert!(
            (a - 100.0_f64).abs() < 0.01 && (b - 100.0_f64).abs() < 0.01,
            "{a} {b}\n{text}"
        );
    }
}
