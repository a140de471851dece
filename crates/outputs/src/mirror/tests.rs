//! Tests of the mirror as a whole: what a reader sees after what was delivered.

mod costs;
mod crashes;
mod damage;
mod hostile;
mod readers;
mod retention;
mod seed_rules;
mod site;
mod site_rules;
mod states;
