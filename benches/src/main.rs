//! `pawl-bench`: load programs for a node over real sockets, and the limits of the machine beside
//! them.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`floor`] | the limits of the machine |
//! | [`load`] | what is asked, and what is told of it |
//! | [`lane`] | connections under load, cheap enough to share two cores with the node |
//! | [`client`] | one connection, one question at a time |
//! | [`node`] | starting and stopping a node of one's own |
//! | [`report`] | all targets in one run |
//! | [`statistics`], [`table`], [`plot`] | latencies, tables, drawings |

mod arguments;
mod client;
mod error;
mod floor;
mod lane;
mod load;
mod node;
mod plot;
mod process;
mod report;
mod statistics;
mod table;
mod window;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;

use arguments::{Arguments, FloorArguments, LoadArguments, Measurement, ReportArguments};
use error::{Doing, Result};
use floor::FloorOptions;
use load::{Case, Disk, Files, Report};
use node::{NodeOptions, RunningNode};
use plot::Curve;
use report::{ReportOptions, Scale};

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Measurement::Floor(arguments) => measure_floor(&arguments),
        Measurement::Send(arguments) => measure_load(Case::Send, &arguments),
        Measurement::Poll(arguments) => measure_load(Case::Poll, &arguments),
        Measurement::EndToEnd(arguments) => measure_load(Case::EndToEnd, &arguments),
        Measurement::Metadata(arguments) => measure_load(Case::Metadata, &arguments),
        Measurement::Report(arguments) => measure_report(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pawl-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Where files are made that are not kept.
fn scratch(directory: &Option<PathBuf>) -> PathBuf {
    directory.clone().unwrap_or_else(std::env::temp_dir)
}

fn measure_floor(arguments: &FloorArguments) -> Result<()> {
    let directory = scratch(&arguments.directory);
    let options = match arguments.quick {
        true => FloorOptions::quick(&directory),
        false => FloorOptions::full(&directory),
    };
    let floor = floor::measure(&options)?;
    println!("{}", floor.table().text());
    write_json(&arguments.json, &floor)
}

fn measure_load(case: Case, arguments: &LoadArguments) -> Result<()> {
    let load = arguments.load(case);
    load.check()?;
    let directory = scratch(&arguments.directory);
    let disk = Disk::measure(&directory)?;
    let outcome = match &arguments.node.start {
        None => load::run(&load, &arguments.node.running())?,
        Some(binary) => {
            let data = tempfile::tempdir_in(&directory).doing("make a data directory")?;
            let node = RunningNode::start(&NodeOptions {
                binary: binary.clone(),
                directory: data.path().to_owned(),
                environment: arguments.node.environment.clone(),
            })?;
            let outcome = load::run(&load, &node.node)?;
            node.stop()?;
            outcome
        }
    };
    let report = Report::new(outcome, disk);
    println!("{}", report.text());
    write_files(&arguments.files(), &report)
}

fn measure_report(arguments: &ReportArguments) -> Result<()> {
    let beside = || -> Result<PathBuf> {
        let this = std::env::current_exe().doing("find this program")?;
        Ok(this.with_file_name("pawl"))
    };
    let options = ReportOptions {
        binary: arguments.start.clone().map_or_else(beside, Ok)?,
        directory: scratch(&arguments.directory),
        repetitions: match arguments.quick {
            true => 1,
            false => arguments.repetitions,
        },
        only: arguments.only.clone(),
        scale: match arguments.quick {
            true => Scale::QUICK,
            false => Scale::FULL,
        },
        peers: arguments.peers.clone(),
    };
    let report = report::run(&options)?;
    println!("{}", report.text());
    write_json(&arguments.json, &report)?;
    match &arguments.markdown {
        Some(path) => write_text(path, &report.markdown()),
        None => Ok(()),
    }
}

fn write_files(files: &Files, report: &Report) -> Result<()> {
    write_json(&files.json, report)?;
    let outcome = &report.outcome;
    let title = format!(
        "{}: {} connections, {} x {} bytes",
        outcome.load.case.name(),
        outcome.load.lanes,
        outcome.load.batch,
        outcome.load.message_bytes
    );
    let curve = Curve {
        name: outcome.load.case.name().to_owned(),
        points: outcome.curve.clone(),
    };
    let drawing = plot::svg(&title, &[curve])?;
    if let Some(path) = &files.html {
        write_text(path, &plot::html(&title, &report.text(), &drawing))?;
    }
    match &files.svg {
        Some(path) => write_text(path, &drawing),
        None => Ok(()),
    }
}

fn write_json(path: &Option<PathBuf>, value: &impl Serialize) -> Result<()> {
    let Some(path) = path else {
        return Ok(());
    };
    let json = serde_json::to_string_pretty(value).expect("results are numbers and text");
    write_text(path, &(json + "\n"))
}

fn write_text(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).doing("write a file of results")
}
