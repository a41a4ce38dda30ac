/**
 * Runs one script on the room's awareness and on that of y-protocols, then tests the room's additions, then a binding's
 * own code.
 */

import { EditorState, Text } from "@codemirror/state";
import { type DecorationSet, EditorView, type ViewUpdate } from "@codemirror/view";
import { describe, expect, onTestFinished, test } from "vitest";
import { yRemoteSelections, yCollab } from "y-codemirror.next";
import { Awareness } from "y-protocols/awareness";
import * as Y from "yjs";

import type { ClientId, UserId } from "../../shared/ids.ts";
import { ClientFakeClock } from "../testing/fake-clock.ts";
import { ModelServer } from "../testing/model-server.ts";
import type { ProviderOptions } from "../yjs/provider-events.ts";
import { YjsProvider } from "../yjs/yjs-provider.ts";
import { RoomAwareness } from "./awareness.ts";
import type { Participant } from "./participants.ts";

const clock = new ClientFakeClock();
const alone = (doc: Y.Doc): RoomAwareness =>
  new RoomAwareness(
    doc,
    { participants: new Map(), show: () => {} },
    {
      clock,
      reportError: (error) => {
        throw error;
      },
    },
  );

type Change = { readonly added: number[]; readonly updated: number[]; readonly removed: number[] };

describe.each([
  ["of y-protocols", (doc: Y.Doc): Awareness => new Awareness(doc)],
  ["of a room", (doc: Y.Doc): Awareness => alone(doc)], // The type of the room's awareness is assignable to that of y-protocols.
])("an awareness %s", (_, make) => {
  function eventsOf(awareness: Awareness): string[] {
    const events: string[] = [];
    for (const name of ["change", "update"] as const) {
      awareness.on(name, ({ added, updated, removed }: Change, origin: unknown) =>
        events.push(`${name} ${added.length}/${updated.length}/${removed.length} ${String(origin)}`),
      );
    }
    awareness.on("destroy", () => events.push("destroy"));
    return events;
  }

  test("[AWA1] awareness begins with an empty state of the document's client", () => {
    const doc = new Y.Doc();
    const awareness = make(doc);
    expect([
      awareness.clientID,
      awareness.doc === doc,
      awareness.getLocalState(),
      awareness.getStates().size,
      awareness.states === awareness.getStates(),
    ]).toEqual([doc.clientID, true, {}, 1, true]);
    expect(awareness.meta.get(doc.clientID)?.clock).toBe(0);
    awareness.destroy();
  });

  test("[AWA1] awareness emits its own update at once, and a change only where a field differs", () => {
    const awareness = make(new Y.Doc());
    const events = eventsOf(awareness);
    awareness.setLocalStateField("user", { name: "Ann" });
    awareness.setLocalStateField("user", { name: "Ann" });
    awareness.setLocalState({ user: { name: "Ann" }, cursor: null });
    expect(awareness.getLocalState()).toEqual({ user: { name: "Ann" }, cursor: null });
    awareness.setLocalState(null);
    awareness.setLocalStateField("user", { name: "nobody" });
    expect([awareness.getLocalState(), awareness.states.size]).toEqual([null, 0]);
    awareness.setLocalState({});
    expect(events).toEqual([
      "change 0/1/0 local",
      "update 0/1/0 local",
      "update 0/1/0 local",
      "change 0/1/0 local",
      "update 0/1/0 local",
      "change 0/0/1 local",
      "update 0/0/1 local",
      "change 1/0/0 local",
      "update 1/0/0 local",
    ]);
    expect(awareness.meta.get(awareness.clientID)?.clock).toBe(5);
    awareness.destroy();
  });

  test("[AWA1] listeners can be removed, and destroy removes them", () => {
    const awareness = make(new Y.Doc());
    let calls = 0;
    const count = (): void => void (calls += 1);
    awareness.on("change", count);
    awareness.setLocalStateField("a", 1);
    awareness.off("change", count);
    awareness.setLocalStateField("a", 2);
    expect(calls).toBe(1);
    const events = eventsOf(awareness);
    awareness.destroy();
    awareness.setLocalState({ a: 3 });
    expect(events).toEqual(["destroy", "change 0/0/1 local", "update 0/0/1 local"]);
  });
});

class Editor {
  readonly doc = new Y.Doc();
  readonly provider: YjsProvider;
  readonly changes: { added: number[]; updated: number[]; removed: number[]; origin: unknown }[] = [];

  constructor(server: ModelServer, seed: number) {
    this.provider = new YjsProvider({ url: "ws://h", token: "t", room: "notes", doc: this.doc } as ProviderOptions, server.world(seed));
    this.provider.awareness.on(
      "change",
      (change: Change, origin: unknown) => origin !== "local" && this.changes.push({ ...change, origin }),
    );
  }

  get states(): unknown[] {
    return [...this.provider.awareness.getStates()].filter(([client]) => client !== this.doc.clientID).map(([, state]) => state);
  }
}

test("[AWA2] each client sees the states of others by document client id, and receives events for added, updated and removed clients", async () => {
  const server = new ModelServer(new ClientFakeClock());
  const ann = new Editor(server, 1);
  ann.provider.awareness.setLocalState({ user: { name: "Ann" }, cursor: null, list: [1, [2]] });
  await server.clock.advance(1_000);
  const bob = new Editor(server, 2);
  await server.clock.advance(1_000);
  const annId = ann.doc.clientID;
  expect(bob.provider.awareness.getStates().get(annId)).toEqual({ user: { name: "Ann" }, cursor: null, list: [1, [2]] });
  ann.provider.awareness.setLocalState({ user: { name: "Anna" }, cursor: null });
  await server.clock.advance(1_000);
  expect(bob.states).toEqual([{ user: { name: "Anna" }, cursor: null }]);
  ann.provider.destroy();
  await server.clock.advance(1_000);
  expect(bob.states).toEqual([]);
  expect(bob.changes).toEqual(
    [
      { added: [annId], updated: [], removed: [] },
      { added: [], updated: [annId], removed: [] },
      { added: [], updated: [], removed: [annId] },
    ].map((change) => ({ ...change, origin: bob.provider })),
  );
  expect([...bob.provider.awareness.meta.keys()], "nothing is kept of clients that left").toEqual([bob.doc.clientID]);
});

test("[AWA13] a change of another client is emitted as `change` and as `update`, with the same clients and origin", () => {
  const [client, participants] = ["bob_____________" as ClientId, new Map<ClientId, Participant>()];
  const awareness = new RoomAwareness(
    new Y.Doc(),
    { participants, show: () => {} },
    { clock, reportError: (error) => expect.unreachable(String(error)) },
  );
  const events: unknown[] = [];
  for (const name of ["change", "update"]) awareness.on(name, (change: Change, origin: unknown) => events.push([name, change, origin]));
  participants.set(client, { client, fields: { yjs: 0 } } as unknown as Participant);
  awareness.receivePresence({ entered: [client], changed: [], left: [] }, "room");
  const change: Change = { added: [0], updated: [], removed: [] };
  expect(events).toEqual([
    ["change", change, "room"],
    ["update", change, "room"],
  ]);
});

test("[AWA3] a changed field travels alone, and nothing is sent while nothing changes", async () => {
  const server = new ModelServer(new ClientFakeClock());
  const ann = new Editor(server, 1);
  ann.provider.awareness.setLocalStateField("user", { name: "Ann", colour: "#b4452c" });
  await server.clock.advance(1_000);
  server.receivedFrames.length = 0;
  const place = Y.createRelativePositionFromTypeIndex(ann.doc.getText("t"), 0);
  ann.provider.awareness.setLocalStateField("cursor", { anchor: place, head: place });
  await server.clock.advance(600_000);
  const frames = server.receivedFrames.filter(({ type }) => type === "presence");
  expect(frames).toMatchObject([{ fields: [{ name: "cursor" }] }]);
});

test("[AWA4] no client sees a hidden client, and awareness ignores participants that only use presence", async () => {
  const server = new ModelServer(new ClientFakeClock());
  const [ann, bob] = [new Editor(server, 1), new Editor(server, 2)];
  await server.clock.advance(1_000);
  bob.changes.length = 0;
  ann.provider.presence.set({ cursor: { x: 1, y: 1 } });
  await server.clock.advance(1_000);
  expect([bob.changes, bob.states]).toEqual([[], [{}]]);
  ann.provider.awareness.setLocalState(null);
  await server.clock.advance(1_000);
  expect([bob.states, bob.provider.participants.size]).toEqual([[], 2]);
});

test("[AWA5] no participant can set this client's state; of several with one client id the last of the first one's user counts", async () => {
  const server = new ModelServer(new ClientFakeClock());
  const ann = new Editor(server, 1);
  await server.clock.advance(1_000);
  const show = (name: string, id: number, mood: string, user = "one"): void => {
    const client = name.padEnd(16, "_") as ClientId;
    const json = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
    server.sendPresenceDelta(ann.provider.room as never, server.presence().enter(client, { user: user as UserId }));
    server.sendPresenceDelta(
      ann.provider.room as never,
      server.presence().show(client, [
        { name: "yjs", value: json(id) },
        { name: "mood", value: json(mood) },
      ]),
    );
  };
  show("mallory", ann.doc.clientID, "evil");
  show("bob", 7, "first");
  show("cid", 7, "second");
  show("eve", 7, "another user", "eve");
  show("odd", -1, "no client");
  await server.clock.advance(100);
  const states = ann.provider.awareness.getStates();
  expect([states.get(ann.doc.clientID), states.get(7), states.size]).toEqual([{}, { mood: "second" }, 2]);
  server.sendPresenceDelta(ann.provider.room as never, server.presence().leave("cid".padEnd(16, "_") as ClientId));
  await server.clock.advance(100);
  expect(states.get(7)).toEqual({ mood: "first" });
});

test("[AWA10] a field that is too large is reported once, and the caret still moves without it", async () => {
  const server = new ModelServer(new ClientFakeClock());
  const [ann, bob] = [new Editor(server, 1), new Editor(server, 2)];
  const problems: string[] = [];
  ann.provider.on("error", ({ kind }) => problems.push(kind));
  await server.clock.advance(1_000);
  ann.provider.awareness.setLocalState(null);
  ann.provider.awareness.setLocalState({ user: { name: "Ann", avatar: "x".repeat(5_000) } });
  for (const cursor of [1, 2, 3]) {
    ann.provider.awareness.setLocalStateField("cursor", cursor);
    await server.clock.advance(1_000);
    expect([problems, bob.states]).toEqual([["presence-too-large"], [{ cursor }]]);
  }
  ann.provider.awareness.setLocalStateField("user", { name: "Ann" });
  await server.clock.advance(1_000);
  expect(bob.states).toEqual([{ user: { name: "Ann" }, cursor: 3 }]);
});

test("[AWA11] a field that is too large delays no other field, and is sent once it fits", async () => {
  const server = new ModelServer(new ClientFakeClock());
  const [ann, bob] = [new Editor(server, 1), new Editor(server, 2)];
  await server.clock.advance(1_000);
  const [user, map, avatar] = ["Ann", "m".repeat(2_500), "a".repeat(2_500)];
  ann.provider.awareness.setLocalState({ user, avatar: avatar + avatar });
  await server.clock.advance(1_000);
  expect(bob.states).toEqual([{ user }]);
  ann.provider.awareness.setLocalState({ user, map });
  ann.provider.awareness.setLocalState({ user, map, avatar });
  await server.clock.advance(1_000);
  expect(bob.states).toEqual([{ user, map }]);
  ann.provider.awareness.setLocalState({ user, avatar });
  await server.clock.advance(1_000);
  expect(bob.states).toEqual([{ user, avatar }]);
});

test("[AWA12] presence works on engines without `isWellFormed`, `toSorted` and `URL.canParse`, as Hermes of React Native", async () => {
  const server = new ModelServer(new ClientFakeClock());
  const missing = [
    [String.prototype, "isWellFormed"],
    [Array.prototype, "toSorted"],
    [URL, "canParse"],
  ] as const;
  const kept = missing.map(([type, name]) => Object.getOwnPropertyDescriptor(type, name)!);
  onTestFinished(() => missing.forEach(([type, name], index) => void Object.defineProperty(type, name, kept[index]!)));
  for (const [type, name] of missing) Reflect.deleteProperty(type, name);
  const [ann, bob] = [new Editor(server, 1), new Editor(server, 2)];
  await server.clock.advance(1_000);
  ann.provider.awareness.setLocalState({ "user": "Ann", "😀": 1 });
  await server.clock.advance(1_000);
  expect(bob.states).toEqual([{ "user": "Ann", "😀": 1 }]);
  ann.provider.awareness.setLocalState({ user: "A" });
  await server.clock.advance(1_000);
  expect(bob.states).toEqual([{ user: "A" }]);
  expect(() => ann.provider.awareness.setLocalState({ "\ud83d": 1 })).toThrow("a presence field is named by");
});

test("[AWA10] an application field cannot replace the Yjs client id", () => {
  const server = new ModelServer(new ClientFakeClock());
  const { awareness, presence } = new Editor(server, 1).provider;
  for (const set of [
    () => awareness.setLocalState({ yjs: 7 }),
    () => awareness.setLocalStateField("yjs", 7),
    () => presence.set({ yjs: 7 }),
  ])
    expect(set).toThrow('cannot be named "yjs"');
  expect(awareness.getLocalState()).toEqual({});
});

/** The part of an editor view that the plugin uses; there is no DOM here. */
class View {
  readonly plugin: { update(update: ViewUpdate): void; decorations: DecorationSet };
  readonly state: EditorState;
  redraws = 0;

  constructor({ doc, provider }: Editor) {
    const text = doc.getText("t");
    this.state = EditorState.create({ doc: text.toString(), extensions: yCollab(text, provider.awareness) });
    const view = { state: this.state, dispatch: () => (this.redraws += 1) } as unknown as EditorView;
    this.plugin = (yRemoteSelections as unknown as { create(view: EditorView): View["plugin"] }).create(view);
  }

  /** Focuses the view and sets the selection. */
  select(anchor: number, head: number): void {
    const { state } = this.state.update({ selection: { anchor, head } });
    this.plugin.update({
      state,
      view: { state, hasFocus: true, dom: { ownerDocument: { hasFocus: () => true } } },
    } as unknown as ViewUpdate);
  }

  get carets(): { at: number; name: string }[] {
    const found: { at: number; name: string }[] = [];
    this.plugin.decorations.between(
      0,
      Text.of([this.state.doc.toString()]).length,
      (from, _, { spec }) => void (spec.widget && found.push({ at: from, name: spec.widget.name })),
    );
    return found;
  }

  get selections(): string[] {
    const found: string[] = [];
    this.plugin.decorations.between(
      0,
      this.state.doc.length,
      (from, to, { spec }) => void (spec.widget ?? found.push(this.state.doc.sliceString(from, to))),
    );
    return found;
  }
}

test("[AWA6] y-codemirror.next shows the carets and selections of others, with their names", async () => {
  const server = new ModelServer(new ClientFakeClock());
  const [ann, bob] = [new Editor(server, 1), new Editor(server, 2)];
  await server.clock.advance(1_000);
  ann.doc.getText("t").insert(0, "hello world");
  ann.provider.awareness.setLocalStateField("user", { name: "Ann", color: "#b4452c" });
  await server.clock.advance(1_000);
  const [annsView, bobsView] = [new View(ann), new View(bob)];
  annsView.select(6, 11);
  await server.clock.advance(1_000);
  expect(bobsView.redraws).toBeGreaterThan(0);
  bobsView.select(0, 0);
  expect([bobsView.carets, bobsView.selections]).toEqual([[{ at: 11, name: "Ann" }], ["world"]]);
  expect(annsView.carets).toEqual([]);
  ann.provider.destroy();
  await server.clock.advance(1_000);
  bobsView.select(0, 0);
  expect(bobsView.carets).toEqual([]);
});
