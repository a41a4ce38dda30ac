// @vitest-environment happy-dom
/** Components in rooms of a model server, under StrictMode, on a server, and with components that suspend. */

import { createElement as h, type ReactNode, StrictMode, Suspense, use } from "react";
import { hydrateRoot } from "react-dom/client";
import { renderToString } from "react-dom/server";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import * as Y from "yjs";

import { CLOSE } from "../shared/wire/close-codes.ts";
import type { ModelServer } from "../client/testing/model-server.ts";
import { eventually } from "../test/system/eventually.ts";
import { CoroomProvider, type OpenRoom, useLeaderboard, useParticipants, usePresence, useRoom, useSaved, useStatus } from "./index.ts";
import { endTimersWithFile, MountedTree, type ServedRooms, serveRooms } from "./testing/served-rooms.ts";

endTimersWithFile();
let served: ServedRooms;
beforeEach(async () => {
  served = await serveRooms();
});
afterEach(() => served.stop());

const inRooms = (...children: ReactNode[]): ReactNode =>
  h(StrictMode, null, h(CoroomProvider, { url: served.url, token: () => "t.o.k" }, ...children));

function mount(...children: ReactNode[]): MountedTree {
  const tree = new MountedTree(inRooms(...children));
  onTestFinished(() => tree.unmount());
  return tree;
}

/** Shows a room's facts, and gives the room to the test. */
function Facts({ name = "notes", take }: { name?: string; take?: (room: OpenRoom) => void }): ReactNode {
  const room = useRoom(name);
  take?.(room);
  const { status, refusal } = useStatus(room);
  const { saved, unsavedEdits } = useSaved(room);
  return `[${status} ${saved ? "saved" : `${unsavedEdits} unsaved`} ${useParticipants(room).length}${refusal ? ` ${refusal.kind}` : ""}]`;
}

const textOf = ({ doc }: OpenRoom): string => doc.getText("t").toString();

test("[HOOK1] two trees under StrictMode are two participants of one room and converge", async () => {
  const rooms = new Map<string, OpenRoom>();
  const [ann, bob] = ["ann", "bob"].map((name) => mount(h(Facts, { take: (room) => void rooms.set(name, room) }))) as [
    MountedTree,
    MountedTree,
  ];
  await eventually("both are connected", () => ann.text === "[connected saved 2]" && bob.text === ann.text);
  expect(served.model.connections.size).toBe(2);
  served.model.commits = false;
  rooms.get("ann")!.doc.getText("t").insert(0, "hello");
  await eventually("the edit waits", () => ann.text === "[connected 1 unsaved 2]");
  served.model.commits = true;
  served.model.commit("notes" as never);
  await eventually("the edit is saved", () => ann.text === "[connected saved 2]" && textOf(rooms.get("bob")!) === "hello");
});

test("[HOOK2] components that use one room share its document, and leave it a second after the last one", async () => {
  const taken = new Set<OpenRoom>();
  const facts = (key: string): ReactNode => h(Facts, { key, take: (room) => void taken.add(room) });
  const tree = mount(facts("one"), facts("two"));
  await eventually("both show the room", () => tree.text === "[connected saved 1][connected saved 1]");
  tree.show(inRooms(facts("two")));
  tree.show(inRooms(facts("three"))); // As hot reload does: one component replaces another.
  await eventually("one is left", () => tree.text === "[connected saved 1]");
  expect([taken.size, served.model.connections.size]).toEqual([1, 1]);

  tree.show(inRooms());
  await eventually("the room is left", () => served.model.connections.size === 0);
  tree.show(inRooms(facts("four")));
  await eventually("it is joined again, with a new document", () => tree.text === "[connected saved 1]");
  expect(taken.size).toBe(2);
});

test("[HOOK3] a room with unsaved edits stays open after the last unmount until they are saved", async () => {
  let room: OpenRoom | undefined;
  const tree = mount(h(Facts, { take: (opened) => (room = opened) }), h(Facts, { name: "tasks" }));
  await eventually("connected", () => tree.text === "[connected saved 1][connected saved 1]");
  served.model.commits = false;
  room!.doc.getText("t").insert(0, "last words");
  tree.unmount();
  const left = (): number => served.model.receivedFrames.filter(({ type }) => type === "leave").length;
  await eventually("the other room is left", () => left() === 1);
  expect([served.model.connections.size, room!.provider.saved, room!.provider.status]).toEqual([1, false, "connected"]);
  served.model.commits = true;
  served.model.commit("notes" as never);
  await eventually("the room is left once the edit is saved", () => served.model.connections.size === 0);
  expect(served.model.room().head).toBe(1);
});

test.each([
  ["may only be read after a reconnect", (model: ModelServer) => ((model.rights = { read: true, write: false }), model.cut())],
  [
    "has a stuck document",
    (_: ModelServer, { doc }: OpenRoom) =>
      doc.transact(() => {
        let map = doc.getMap("root");
        for (let level = 0; level < 600; level++) map = map.set("a", new Y.Map());
      }),
  ],
] as const)("[HOOK21] a room with unsaved edits is left once it %s, because they cannot be saved", async (_, fail) => {
  let room: OpenRoom | undefined;
  const tree = mount(h(Facts, { take: (opened) => (room = opened) }), h(Facts, { name: "tasks" }));
  await eventually("connected", () => tree.text === "[connected saved 1][connected saved 1]");
  served.model.commits = false;
  room!.doc.getText("t").insert(0, "last words");
  tree.unmount();
  const left = (): number => served.model.receivedFrames.filter(({ type }) => type === "leave").length;
  await eventually("the other room is left", () => left() === 1);
  expect(room!.provider.status).toBe("connected");
  fail(served.model, room!);
  await eventually("no connection is left", () => served.model.connections.size === 0 && room!.doc.isDestroyed);
});

test("[HOOK4] a server renders without connecting, and the page continues from what it rendered", async () => {
  const node = inRooms(h(Facts));
  const rendered = renderToString(node);
  expect(rendered).toBe("[disconnected saved 0]");
  const element = document.createElement("div");
  element.innerHTML = rendered;
  const mismatches: unknown[] = [];
  const root = hydrateRoot(element, node, { onRecoverableError: (error) => mismatches.push(error) });
  onTestFinished(() => root.unmount());
  await eventually("it connects", () => element.textContent === "[connected saved 1]");
  expect([mismatches, served.model.connections.size]).toEqual([[], 1]);
});

test("[HOOK5] a component that suspends before it is mounted keeps its room", async () => {
  const taken = new Set<OpenRoom>();
  let proceed: (value: string) => void = () => {};
  const data = new Promise<string>((resolve) => (proceed = resolve));
  const Loads = (): ReactNode => {
    const room = useRoom("notes");
    taken.add(room);
    return `${use(data)} ${useStatus(room).status}`;
  };
  const tree = mount(h(Suspense, { fallback: "loading" }, h(Loads)));
  await eventually("it suspends", () => tree.text === "loading");
  expect(served.model.connections.size).toBe(0);
  proceed("loaded");
  await eventually("it is shown", () => tree.text === "loaded connected");
  expect([taken.size, served.model.connections.size]).toEqual([1, 1]);
});

test("[HOOK6] presence has the types of the application, and what others show is rendered", async () => {
  type Shown = { color: string; isTyping: boolean };
  const Caret = ({ color }: { color: string }): ReactNode => {
    const { own, others, set } = usePresence<Shown>(useRoom("notes"));
    // @ts-expect-error the field has another type
    void (() => set({ color: 3 }));
    own.isTyping satisfies boolean | undefined;
    return h(
      "button",
      { onClick: () => set({ color, cursor: { x: 1, y: 2 } }) },
      `own ${own.color}, others ${others.map(({ fields, cursor }) => `${fields.color} at ${cursor?.x}`).join()}`,
    );
  };
  const [ann, bob] = [mount(h(Caret, { color: "red" })), mount(h(Caret, { color: "blue" }))];
  await eventually("both are there", () => bob.text === "own undefined, others undefined at undefined" && ann.text === bob.text);
  ann.element.querySelector("button")!.click();
  await eventually("bob sees ann's color", () => bob.text === "own undefined, others red at 1");
  bob.element.querySelector("button")!.click();
  await eventually("ann sees bob's", () => ann.text === "own red, others blue at 1");
});

test("[HOOK7] a board is watched while its component is mounted, and shows what the server sends", async () => {
  const Ranking = (): ReactNode => {
    const { ranking, state } = useLeaderboard(useRoom("notes"), { window: "day", shown: 3 });
    return `${state} ${ranking.map(({ rank, name, score }) => `${rank}. ${name} ${score}`).join()}`;
  };
  const watched = (): (number | undefined)[] =>
    served.model.receivedFrames
      .map((frame) => (frame.type === "watch-board" ? frame.shown : undefined))
      .filter((shown) => shown !== undefined);
  const tree = mount(h(Ranking), h(Facts));
  await eventually("the board is requested", () => watched().at(-1) === 3);
  expect(tree.text).toContain("waiting");
  served.model.send({
    type: "board",
    channel: served.model.channelOf("notes" as never),
    role: "everyone",
    window: "day",
    state: "live",
    windowId: "2026-11-25",
    seq: 4 as never,
    members: 1,
    ranking: [{ user: "ada" as never, name: "Ada", score: 9 }],
  } as never);
  await eventually("the ranking is shown", () => tree.text.startsWith("live 1. Ada 9"));
  tree.show(inRooms(h(Facts)));
  await eventually("the board is not watched any more", () => watched().at(-1) === 0);
});

test("[HOOK25] a board of a room that was left while its component was hidden waits for the next render", async () => {
  let left: OpenRoom | undefined;
  const tree = mount(h(Facts, { take: (room) => void (left = room) }));
  await eventually("the room is joined", () => tree.text === "[connected saved 1]");
  tree.show(inRooms());
  await eventually("the room is left", () => left!.doc.isDestroyed);
  const Ranking = (): ReactNode => useLeaderboard(left!).state;
  tree.show(inRooms(h(Ranking), h(Facts)));
  await eventually("the page goes on", () => tree.text === "waiting[connected saved 1]");
});

test("[HOOK16] a window that has ended is read over HTTP, and one that cannot be read is unavailable until it can", async () => {
  const LastWeek = ({ window = "last-week" }: { window?: string }): ReactNode => {
    const { ranking, own, state, windowId, error } = useLeaderboard(useRoom("notes"), { window, role: "editors", shown: 1 });
    return `${state} ${windowId} ${ranking.map(({ rank, name, score }) => `${rank}. ${name} ${score}`).join()} own ${own?.rank}${error ? `: ${error.message}` : ""}`;
  };
  const path = "/v1/rooms/notes/leaderboard";
  const places = [
    { rank: 1, user: "ada", name: "Ada", score: 9 },
    { rank: 2, user: "bob", name: "", score: 4 },
  ];
  const page = { window: { id: "2026-W47" }, isArchived: true, asOf: { seq: 7 }, members: 2, ranking: places };
  served.http.set(`${path}?window=last-week&role=editors`, { status: 200, body: page });
  served.http.set(`${path}/me?around=0&window=2026-W47&role=editors`, { status: 200, body: { own: { rank: 2, score: 4 } } });
  const tree = mount(h(LastWeek));
  expect(tree.text).toBe("");
  await eventually("the week is read", () => tree.text === "read 2026-W47 1. Ada 9 own 2");
  tree.show(inRooms(h(LastWeek, { window: "last-century" })));
  await eventually("another window shows why it cannot be read", () => tree.text.includes("unavailable"));
  expect(tree.text).toMatch(/^unavailable +own undefined: cannot read the board: nothing at .*last-century.* \(HTTP 404\)$/);
  served.http.set(`${path}?window=last-century&role=editors`, { status: 200, body: { ...page, members: 1 } });
  await eventually("it is read again by itself", () => tree.text === "read 2026-W47 1. Ada 9 own 2", 60_000);
  expect(served.model.receivedFrames.filter(({ type }) => type === "watch-board")).toEqual([]);
});

test("[HOOK17] the window before the current one is read again, because another one takes its place", async () => {
  const timers = vi.spyOn(globalThis, "setTimeout");
  onTestFinished(() => timers.mockRestore());
  const Last = ({ window }: { window: string }): ReactNode => {
    const { state, windowId } = useLeaderboard(useRoom("notes"), { window });
    return `${state} ${windowId}`;
  };
  const path = "/v1/rooms/notes/leaderboard";
  const serve = (window: string, id: string): void => {
    const page = { window: { id }, isArchived: true, asOf: { seq: 7 }, members: 0, ranking: [] };
    served.http.set(`${path}?window=${window}&role=everyone`, { status: 200, body: page });
    served.http.set(`${path}/me?around=0&window=${id}&role=everyone`, { status: 404, body: { error: "not-ranked" } });
  };
  const later = (): (() => void)[] => timers.mock.calls.flatMap(([run, ms]) => (ms === 300_000 ? [run as () => void] : []));
  serve("2026-W47", "2026-W47");
  serve("last-week", "2026-W47");
  const tree = mount(h(Last, { window: "2026-W47" }));
  await eventually("the week is read", () => tree.text === "read 2026-W47");
  expect(later()).toEqual([]);
  tree.show(inRooms(h(Last, { window: "last-week" })));
  await eventually("the last week is read, and will be again", () => tree.text === "read 2026-W47" && later().length > 0);
  serve("last-week", "2026-W48");
  later().at(-1)!();
  await eventually("the next week has taken its place", () => tree.text === "read 2026-W48");
});

test("[HOOK8] a refused token is shown with its reason, also by a component that is mounted later", async () => {
  let room: OpenRoom | undefined;
  const facts = h(Facts, { take: (opened) => (room = opened) });
  const Refused = ({ of }: { of: OpenRoom }): ReactNode => useStatus(of).refusal?.kind;
  const tree = mount(facts);
  await eventually("connected", () => tree.text === "[connected saved 1]");
  tree.show(inRooms(facts)); // The token function is another one in each render.
  await eventually("still connected", () => tree.text === "[connected saved 1]");
  served.model.cut(CLOSE.unauthorized.code);
  await eventually("the refusal is shown", () => tree.text === "[stopped saved 0 connection-refused]");
  tree.show(inRooms(facts, h(Refused, { of: room! })));
  await eventually("by both", () => tree.text === "[stopped saved 0 connection-refused]connection-refused");
});

test.each(["provider", "doc"] as const)("[HOOK26] after a component destroyed the %s, the next mount has a new document", async (part) => {
  const rooms = new Set<OpenRoom>();
  const unmounted = h(Facts, { take: (room) => void rooms.add(room) });
  const tree = mount(unmounted);
  await eventually("connected", () => tree.text === "[connected saved 1]");
  const [first] = rooms;
  tree.show(inRooms());
  await eventually("unmounted", () => tree.text === "");
  first![part].destroy();
  tree.show(inRooms(unmounted));
  await eventually("connected again", () => tree.text === "[connected saved 1]");
  expect([...rooms]).toEqual([first, expect.anything()]);
});

test("[HOOK14] a component with a stuck document that is mounted again has a new document", async () => {
  const rooms = new Set<OpenRoom>();
  const Notes = (): ReactNode => {
    const room = useRoom("notes");
    rooms.add(room);
    return `${rooms.size} ${useStatus(room).status}`;
  };
  const page = (key: number): ReactNode => inRooms(h(Notes, { key }));
  const tree = new MountedTree(page(1));
  onTestFinished(() => tree.unmount());
  await eventually("connected", () => tree.text === "1 connected");
  const { doc, provider } = [...rooms][0]!;
  const problems: string[] = [];
  provider.on("error", ({ kind }) => problems.push(kind));
  doc.transact(() => {
    let map = doc.getMap("root");
    for (let level = 0; level < 600; level++) map = map.set("a", new Y.Map()); // No other document accepts it.
  });
  expect(problems).toEqual(["document-stuck"]);
  tree.show(page(2));
  await eventually("there is another document", () => tree.text === "2 connected");
  expect([doc.isDestroyed, [...rooms][1]!.provider.saved]).toEqual([true, true]);
  await eventually("only its provider is connected", () => served.model.presence().snapshot.present.length === 1);
});

test("[HOOK15] a component that is mounted because of a refusal, and uses the room, causes no further attempt", async () => {
  const Name = ({ of }: { of: string }): ReactNode => `${of} of ${useRoom("notes").name}`;
  const Page = (): ReactNode => {
    const { status, refusal } = useStatus(useRoom("notes"));
    return refusal ? h(Name, { key: "refused", of: refusal.kind }) : h(Name, { key: "shown", of: status });
  };
  const tree = mount(h(Page));
  await eventually("connected", () => tree.text === "connected of notes");
  const hellos = (): number => served.model.receivedFrames.filter(({ type }) => type === "hello").length;
  served.model.cut(CLOSE.unauthorized.code);
  await eventually("the refusal is shown", () => tree.text === "connection-refused of notes");
  tree.show(inRooms(h(Page), h(Facts)));
  await eventually("another component is mounted", () => tree.text === "connection-refused of notes[stopped saved 0 connection-refused]");
  expect(hellos()).toBe(1);
});

test("[HOOK22] a room that is refused again for the same reason shows the new time of the next attempt, rendered once for each", async () => {
  served.model.refuseJoins = { reason: "room-full", retryAfterMs: 40 };
  const shown: (number | undefined)[] = [];
  const Wait = (): ReactNode => {
    const { status, retryInMs } = useStatus(useRoom("notes"));
    if (status === "waiting") shown.push(retryInMs);
    return status;
  };
  const tree = new MountedTree(h(CoroomProvider, { url: served.url, token: "t" }, h(Wait)));
  onTestFinished(() => tree.unmount());
  const joins = (): number => served.model.receivedFrames.filter(({ type }) => type === "join").length;
  await eventually("it was refused and asked again twice", () => joins() > 2);
  expect(new Set(shown).size).toBe(shown.length);
  expect(shown.length).toBeGreaterThanOrEqual(2);
  expect(Math.min(...shown.map((ms) => ms ?? 0))).toBeGreaterThan(0);
  served.model.refuseJoins = undefined;
  await eventually("it is admitted", () => tree.text === "connected");
});

test("[HOOK9] a room outside of a CoroomProvider throws an error that names the missing component", () => {
  expect(() => renderToString(h(Facts))).toThrow("need a <CoroomProvider");
});
