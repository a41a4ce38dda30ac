/** An application in a room on a model server, and everything it was told; what the server heard. */

import type { RoomId } from "../../shared/ids.ts";
import type { ClientFrame } from "../../shared/wire/frames.ts";
import type { Problem, Refusal } from "../room/problems.ts";
import type { RoomHostOptions } from "../room/room-events.ts";
import { RoomHost } from "../room/room-host.ts";
import { FakeClock } from "./fake-clock.ts";
import { LIMITS, ModelServer } from "./model-server.ts";

export const NOTES = "notes" as RoomId;
export const MINUTE = 60_000;
export const bytes = (...values: number[]): Uint8Array => new Uint8Array(values);

/** With limits that no test reaches which is not about them. */
export function serverOn(clock = new FakeClock()): ModelServer {
  const server = new ModelServer(clock, { faults: { delayMsMax: 5 } });
  server.limits = { ...LIMITS, editBurst: 100, editsPerSecond: 1_000 };
  return server;
}

export class App {
  readonly host: RoomHost;
  readonly edits: string[] = [];
  readonly tentative: string[] = [];
  readonly statuses: string[] = [];
  readonly problems: Problem[] = [];
  readonly refusals: Refusal[] = [];
  readonly facts: string[] = [];

  constructor(server: ModelServer, seed: number, options: Partial<RoomHostOptions> = {}) {
    this.host = new RoomHost(
      { url: "ws://h", token: () => "t", room: NOTES, connect: false, ...options } as RoomHostOptions,
      server.world(seed),
    );
    this.host.on("edit", ({ seq, payload, own }) => this.edits.push(`${seq}:${payload}${own ? " own" : ""}`));
    this.host.on("tentative", (edits) => this.tentative.push(...edits.map(({ payload }) => `${payload}`)));
    this.host.on("status", ({ status }) => this.statuses.push(status));
    this.host.on("error", (problem) => this.problems.push(problem));
    this.host.on("refused", (refusal) => this.refusals.push(refusal));
    this.host.on("synced", (synced) => this.facts.push(synced ? "synced" : "not synced"));
    this.host.on("saved", (saved) => this.facts.push(saved ? "saved" : "unsaved"));
    this.host.on("saving", (saving) => this.facts.push(`log ${saving}`));
    this.host.connect();
  }
}

export function heard<Type extends ClientFrame["type"]>(server: ModelServer, type: Type): Extract<ClientFrame, { type: Type }>[] {
  return server.heard.filter((frame): frame is Extract<ClientFrame, { type: Type }> => frame.type === type);
}
