//! A worker that speaks HTTP: the shipped supervisor, real shims, and a server on a loopback port.

mod ghosts;
mod installation;
mod leases;
mod logs;
mod refused;
mod roles;
mod round_trip;
