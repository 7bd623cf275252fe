//! Routes of a router on the card.
//!
//! The record holds the routes, as the card holds only the table that was made of them. A change
//! makes a new table of all routes and has the router use it: a packet sees the routes before the
//! change or those after it. They are gone with the domain.

use super::Extensions;
use crate::load::{Card, LoadError, Loader};
use crate::routes::{self, NextHop, Prefix, ROUTER, ReplaceError, Route, RouteError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// The routes of a domain.
pub(super) type Routes = BTreeMap<Prefix, NextHop>;

/// What to do with the routes of a router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteChange {
    /// Nothing.
    None,
    /// One more, or another next hop for a prefix that has one.
    Add(Route),
    /// One less.
    Delete(Prefix),
    /// These in place of all that there were; of several to the same prefix the last one counts.
    Replace(Vec<Route>),
}

/// The routes of a router.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterReport {
    /// Its domain.
    pub domain: u32,
    /// Its routes as text, in the order of their prefixes.
    pub routes: Vec<String>,
    /// Words of the table that was made of them.
    pub words: usize,
    /// Words that there is room for.
    pub room: usize,
}

/// Why the routes are as they were.
#[derive(Debug, Error)]
pub enum ChangeError<E: std::error::Error> {
    /// No domain routes.
    #[error("no router is loaded")]
    NoRouter,
    /// More than one domain routes, and none was named.
    #[error("domains {0:?} are routers: name one")]
    SeveralRouters(Vec<u32>),
    /// The domain does something else.
    #[error("domain {domain} is {name}, which is no router")]
    NotARouter {
        /// The domain.
        domain: u32,
        /// Its extension.
        name: String,
    },
    /// What is to be deleted is not there.
    #[error("there is no route to {0}")]
    NoRoute(Prefix),
    /// Routes of which no table can be made.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The table does not fit, or the card is gone.
    #[error(transparent)]
    Replace(#[from] ReplaceError<E>),
    /// The firmware loads no extensions, or the card is gone.
    #[error(transparent)]
    Load(#[from] LoadError<E>),
}

impl RouteChange {
    /// Makes it.
    fn make<E: std::error::Error>(&self, routes: &mut Routes) -> Result<(), ChangeError<E>> {
        match self {
            RouteChange::None => {}
            RouteChange::Add(route) => {
                routes.insert(route.addresses(), route.hop());
            }
            RouteChange::Delete(prefix) => {
                let gone = routes.remove(prefix);
                gone.ok_or(ChangeError::NoRoute(*prefix))?;
            }
            RouteChange::Replace(all) => {
                let pair = |route: &Route| (route.addresses(), route.hop());
                *routes = all.iter().map(pair).collect();
            }
        }
        Ok(())
    }
}

impl Extensions {
    /// Changes the routes of a router, by default those of the only one.
    ///
    /// # Errors
    /// [`ChangeError`]: the routes are as they were.
    pub fn change_routes<C: Card>(
        &mut self,
        card: &mut C,
        domain: Option<u32>,
        change: &RouteChange,
    ) -> Result<RouterReport, ChangeError<C::Error>> {
        // A restarted firmware has no router.
        self.loader(card)?;
        let domain = self.router(domain)?;
        let missing = || LoadError::NotLoaded(domain);
        let row = self.loaded.get_mut(domain as usize);
        let row = row.and_then(Option::as_mut).ok_or_else(missing)?;
        let loader: &mut Loader = self.loader.as_mut().ok_or_else(missing)?;
        let mut routes = row.routes.clone();
        change.make(&mut routes)?;
        let all: Vec<Route> = routes
            .iter()
            .map(|(prefix, hop)| Route::to(*prefix, *hop))
            .collect();
        let table = routes::table(&all)?;
        if *change != RouteChange::None {
            routes::replace(loader, card, domain, &table)?;
            row.routes = routes;
        }
        Ok(RouterReport {
            domain,
            routes: all.iter().map(Route::to_string).collect(),
            words: table.len(),
            room: routes::room(loader, domain)?,
        })
    }

    /// The domain that routes: the one that was asked for, or the only one.
    fn router<E: std::error::Error>(&self, domain: Option<u32>) -> Result<u32, ChangeError<E>> {
        if let Some(domain) = domain {
            let row = self.loaded.get(domain as usize).and_then(Option::as_ref);
            let name = &row.ok_or(LoadError::NotLoaded(domain))?.name;
            if name != ROUTER {
                let name = name.clone();
                return Err(ChangeError::NotARouter { domain, name });
            }
            return Ok(domain);
        }
        let routes =
            |row: &Option<super::Loaded>| row.as_ref().is_some_and(|row| row.name == ROUTER);
        let rows = (0..).zip(&self.loaded);
        let routers: Vec<u32> = rows
            .filter(|(_, row)| routes(row))
            .map(|(at, _)| at)
            .collect();
        match routers.as_slice() {
            [] => Err(ChangeError::NoRouter),
            [domain] => Ok(*domain),
            _ => Err(ChangeError::SeveralRouters(routers)),
        }
    }
}
