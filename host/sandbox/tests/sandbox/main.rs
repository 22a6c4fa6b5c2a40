//! The sandbox through its public face: every call goes the way that the loop's calls go.

mod calls;
mod files;
mod limits;
mod loading;
mod support;
