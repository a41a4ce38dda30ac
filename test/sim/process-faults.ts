/** Faults of processes, their clocks and their NATS connections, and requests at the wrong time. */

import type { ClaimRequest, ServerCommand } from "../../shared/bus/placement-messages.ts";
import type { Cluster, Ending, OnConnection, Whom } from "./cluster.ts";
import type { Met, Strike } from "./strike.ts";
import { pick } from "./pick.ts";
import type { SimProcess } from "./sim-process.ts";

const RECONNECT_MS = 150;
const DATE_STEPS_MS_MAX = [60_000, 3_600_000, 1_000];
const RATE_CHANGE_MAX = 0.1;

type Chosen<Part> = (cluster: Cluster, fault: Whom) => Part;

export const never: Met = () => false;
export const always: Met = () => true;

export function endGateway(ending: Ending): Strike {
  return (cluster, fault) => {
    const gateway = cluster.gateway(fault);
    const { size } = gateway.listener;
    return cluster.endGateway(gateway, ending, fault.forMs) && size > 0 ? always : never;
  };
}

export function endRoomServer(ending: Ending): Strike {
  return (cluster, fault) => {
    const server = cluster.roomServer(fault);
    const owned = server.host.owned().length;
    return cluster.endRoomServer(server, ending, fault.forMs) && owned > 0 ? always : never;
  };
}

export const endPlacement: Strike = (cluster, fault) => (cluster.endPlacement(cluster.placement(fault), fault.forMs) ? always : never);

export function pause(chosen: Chosen<{ readonly process: SimProcess }>): Strike {
  return (cluster, fault) => {
    const { how, forMs } = fault;
    const { process } = chosen(cluster, fault);
    process.pause();
    let met = false;
    cluster.later(forMs, () => {
      met = process.state === "paused" && process.waiting > 0;
      process.goOn(how < 0.5);
    });
    return () => met;
  };
}

export function cutOff(chosen: Chosen<OnConnection>): Strike {
  return (cluster, fault) => {
    const { connection } = chosen(cluster, fault);
    const before = connection.lostEver;
    connection.break();
    let met = false;
    cluster.later(Math.max(RECONNECT_MS, fault.forMs), () => {
      met = connection.lostEver > before;
      connection.reconnect();
    });
    return () => met;
  };
}

/** Cuts off or stalls presence only; edits continue. */
export function cutOffPresence(chosen: Chosen<OnConnection>): Strike {
  return (cluster, fault) => {
    const presence = chosen(cluster, fault).connection.companion;
    if (presence === undefined) return never;
    const pipes = [presence.up, presence.down];
    const lossesBefore = presence.lostEver;
    const held = (): number => pipes.reduce((sum, pipe) => sum + pipe.heldEver, 0);
    const heldBefore = held();
    if (fault.how < 0.5) presence.break();
    else for (const pipe of pipes) pipe.hold();
    let met = false;
    cluster.later(Math.max(RECONNECT_MS, fault.forMs), () => {
      met = presence.lostEver > lossesBefore || held() > heldBefore;
      for (const pipe of pipes) pipe.release();
      presence.reconnect();
    });
    return () => met;
  };
}

/** Holds all messages in one direction or both. Afterwards all held messages arrive, or the connection breaks. */
export function stall(chosen: Chosen<OnConnection>, direction: "up" | "down" | "both"): Strike {
  return (cluster, fault) => {
    const { how, forMs } = fault;
    const { connection } = chosen(cluster, fault);
    const connections = connection.companion === undefined ? [connection] : [connection, connection.companion];
    const pipes = connections.flatMap(({ up, down }) => ({ up: [up], down: [down], both: [up, down] })[direction]);
    const breaks = (how * 3) % 1 < 0.3;
    const heldEver = (): number => pipes.reduce((sum, pipe) => sum + pipe.heldEver, 0);
    const before = heldEver();
    for (const pipe of pipes) pipe.hold();
    let met = false;
    cluster.later(forMs, () => {
      met = heldEver() > before;
      if (breaks) connection.break();
      for (const pipe of pipes) pipe.release();
      if (breaks) cluster.later(RECONNECT_MS, () => connection.reconnect());
    });
    return () => met;
  };
}

/** Asks a server to claim a room that may have an owner, as a gateway or placement with old information would. */
export const claimAtRandom: Strike = (cluster, { whom, how }) => {
  const server = cluster.roomServer({ whom });
  const room = pick([...cluster.world.judge.rooms.keys()], how);
  const suspect = cluster.roomServers.find((other) => other !== server)?.server;
  if (room === undefined) return never;
  const request: ClaimRequest = suspect === undefined || how < 0.2 ? { room } : { room, suspect };
  const isNews = server.process.state === "running" && !server.host.owned().includes(room);
  server.process.run(() => void server.host.claim(request));
  return isNews ? always : never;
};

/** Commands an owner to hand over one of its rooms, or another server to follow a room. */
export const moveAtRandom: Strike = (cluster, { whom, how }) => {
  const room = pick([...cluster.world.judge.rooms.keys()], whom);
  if (room === undefined) return never;
  const owner = cluster.roomServers.find(({ host }) => host.owned().includes(room));
  const other = pick(
    cluster.roomServers.filter((server) => server !== owner),
    how,
  )!;
  const order: ServerCommand =
    owner === undefined || how < 0.3
      ? { kind: "follow", room, generation: 0 }
      : { kind: "hand-over", room, to: other.server, generation: 0 };
  const commanded = order.kind === "follow" ? other : owner!;
  commanded.process.run(() => void commanded.handovers.answerCommand(order));
  return commanded.process.state === "running" ? always : never;
};

export const setDate: Strike = (cluster, { whom, how }) => {
  const process = pick(cluster.processes(), whom)!;
  process.setDate((how - 0.5) * 2 * DATE_STEPS_MS_MAX[Math.floor(how * 1_000) % DATE_STEPS_MS_MAX.length]!);
  return process.state === "dead" ? never : always;
};

/** Changes the rate of a steady clock, by much more than a real clock drifts. */
export const setRate: Strike = (cluster, { whom, how, forMs }) => {
  const process = pick(cluster.processes(), whom)!;
  process.setRate(1 + (how - 0.5) * 2 * RATE_CHANGE_MAX);
  cluster.later(forMs, () => process.setRate(1));
  return process.state === "dead" ? never : always;
};

export const restartNats: Strike = (cluster, { forMs }) => {
  const connections = cluster.connections().filter((connection) => connection.connected);
  cluster.world.log.loseUnderWay();
  for (const connection of connections) connection.break();
  for (const connection of connections) cluster.later(Math.max(RECONNECT_MS, forMs / 2), () => connection.reconnect());
  return connections.length > 0 ? always : never;
};

/** An administrator bans the user of a tab, over any gateway. */
export const banUser: Strike = (cluster, { whom, how }) => {
  const { bans } = cluster.world;
  const gateway = cluster.gateway({ whom: how });
  if (bans === undefined || !gateway.isUp || gateway.process.state !== "running") return never;
  const { user } = cluster.tab(whom);
  gateway.process.run(() => bans.impose(gateway, user));
  return () => bans.isKnownEverywhere(user);
};
