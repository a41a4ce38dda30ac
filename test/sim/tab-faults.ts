/** Faults of tabs and their sockets. */

import type { Strike } from "./strike.ts";
import { always, never } from "./process-faults.ts";

export const breakConnection: Strike = (cluster, { whom }) => {
  const { connection } = cluster.tab(whom);
  connection?.break();
  return connection === undefined ? never : always;
};

export function silence(directions: { up: boolean; down: boolean }): Strike {
  return (cluster, { whom, forMs }) => {
    const { connection } = cluster.tab(whom);
    const before = connection?.heldEver ?? 0;
    connection?.goSilent(directions);
    let met = false;
    cluster.later(forMs, () => {
      met = connection !== undefined && connection.heldEver > before;
      connection?.break();
    });
    return () => met;
  };
}

export const takeOffline: Strike = (cluster, { whom, forMs }) => {
  const tab = cluster.tab(whom);
  const wasConnected = tab.connection !== undefined;
  tab.isOffline = true;
  tab.connection?.break();
  cluster.later(forMs, () => (tab.isOffline = false));
  return wasConnected ? always : never;
};

export const slow: Strike = (cluster, { whom }) => {
  const { connection } = cluster.tab(whom);
  connection?.becomeSlow();
  return connection === undefined ? never : always;
};

export const leave: Strike = (cluster, { whom, forMs }) => {
  const tab = cluster.tab(whom);
  const wasConnected = tab.connection !== undefined;
  tab.leave();
  cluster.later(forMs, () => tab.comeBack());
  return wasConnected ? always : never;
};

export const loadAgain: Strike = (cluster, { whom }) => {
  const tab = cluster.tab(whom);
  cluster.reloadTab(tab);
  return tab.device === undefined ? never : always;
};

/** Keystrokes in a second room, within what is left of the time of faults. */
const SECOND_ROOM_KEYSTROKES = 20;

/** A page opens another room on its connection. */
export const openSecondRoom: Strike = (cluster, { whom, how, atMs }) => {
  const { scheduler, size } = cluster.world;
  const place = cluster.openSecondRoom(cluster.tab(whom));
  if (place === undefined) return never;
  const prng = cluster.world.chance(`second room ${how}`);
  for (let count = 0; count < SECOND_ROOM_KEYSTROKES; count++)
    scheduler.after(prng.unit() * (size.faultyMs - atMs), () => cluster.tabs[place]!.type());
  return () => cluster.everyTab.some(({ isGuest, position }) => isGuest && position > 0);
};

export const replace: Strike = (cluster, { whom }) => {
  cluster.replaceTab(cluster.tab(whom));
  return always;
};
