// @vitest-environment happy-dom
/** The dialog of one room, without a browser. */

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

import { planKick } from "../actions.ts";
import type { FleetAnswer, ListedMember, RoomDetails, RoomName } from "../answers.ts";
import { confirmDialog } from "./confirm.ts";
import { roomView } from "./room-view.ts";

const INDEX = readFileSync("console/operations/index.html", "utf8");
const fleetOf = (...servers: string[]): FleetAnswer =>
  ({ servers: servers.map((server) => ({ server, rooms: 1, used: 0.1, draining: false })) }) as unknown as FleetAnswer;

test("[KROOM1] the chosen target of a move stays chosen while it is listed, also when the list of servers changes", () => {
  document.body.innerHTML = /<body>([^]*)<\/body>/.exec(INDEX)![1]!;
  const ignore = (): void => {};
  const room = roomView({ move: ignore, kick: ignore, makeReadOnly: ignore, closed: ignore });
  const details = { tenant: "acme", room: "notes", server: "rs-0", epoch: 1, mode: "flat", participants: 1, heldBack: 0, gateways: [] };
  const choice = document.getElementById("move-to") as HTMLSelectElement;
  const chosenOf = (...servers: string[]): string => {
    room.show(details as unknown as RoomDetails, [], fleetOf(...servers));
    return choice.value;
  };
  room.begin({ tenant: "acme", room: "notes" });
  expect(chosenOf("rs-0", "rs-2", "rs-3")).toBe("rs-2");
  choice.value = "rs-3";
  expect(chosenOf("rs-0", "rs-1", "rs-2", "rs-3")).toBe("rs-3");
  expect(chosenOf("rs-0", "rs-1")).toBe("rs-1");
});

test("[KROOM2] marks that reverse text or have no form are shown by their numbers, so that no name looks like another one", () => {
  document.body.innerHTML = /<body>([^]*)<\/body>/.exec(INDEX)![1]!;
  const ask = confirmDialog();
  const kick = (room: RoomName, member: ListedMember): void =>
    ask({ ...planKick(room, member), act: () => Promise.reject(new Error("not asked")), done: () => "" });
  const view = roomView({ move: () => {}, kick, makeReadOnly: () => {}, closed: () => {} });
  const room = { tenant: "acme", room: "\u202eseton" };
  view.begin(room);
  const details = { ...room, server: "rs-0", epoch: 1, mode: "flat", participants: 1, heldBack: 0, gateways: [] };
  const member = { connection: "c", user: "\u202eada", name: "A\u200bda", write: true };
  view.show(details as unknown as RoomDetails, [member] as unknown as ListedMember[], fleetOf());
  const textOf = (id: string): string => document.getElementById(id)!.textContent;
  expect([textOf("room-title"), textOf("members")]).toEqual(["\\u202eseton", expect.stringContaining("A\\u200bda\\u202eada")]);
  [...document.querySelectorAll("button")].find(({ textContent }) => textContent === "Kick…")!.click();
  expect([textOf("confirm-title"), textOf("confirm-text")]).toEqual([
    "Kick A\\u200bda?",
    expect.stringContaining("This connection of \\u202eada leaves \\u202eseton."),
  ]);
});
