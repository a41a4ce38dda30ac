/**
 * The entry point `@coroom/client/devtools`: a panel in the page for developers, which shows a room's connection, seqs,
 * lanes, participants and last frames. It has its own styles in a shadow root, and renders only while it is open.
 *
 * @module @coroom/client/devtools
 */

import type { Millis } from "../../shared/ids.ts";
import { RoomTrace, type TracedLane } from "../devtools/room-trace.ts";
import type { ClientWorld } from "../ports.ts";
import type { RoomConnection } from "../room/room-connection-host.ts";
import type { RoomPart } from "../room/room-messages.ts";
import type { YjsProvider } from "../yjs/yjs-provider.ts";

const RENDER_MS = 250;
const FRAMES_SHOWN = 20;

const STYLE = `
  :host { all: initial; position: fixed; right: 8px; bottom: 8px; z-index: 2147483647; }
  details { font: 12px/1.4 ui-monospace, monospace; color: #e8eaf0; background: #1b1e27f2; border-radius: 8px; box-shadow: 0 2px 12px #0006; }
  summary { padding: 4px 10px; cursor: pointer; white-space: nowrap; }
  section { width: 340px; max-height: 60vh; overflow: auto; padding: 0 10px 8px; }
  h2 { font: inherit; color: #8f9bb3; margin: 8px 0 2px; }
  table { width: 100%; border-collapse: collapse; }
  td { padding: 0 8px 0 0; vertical-align: top; overflow-wrap: anywhere; }
  td:first-child { color: #8f9bb3; white-space: nowrap; width: 1%; }
`;

type Row = readonly (string | number)[];

/** A room's frames from the first panel on, and the room's clock. */
type Traced = RoomPart & { readonly trace: RoomTrace; readonly now: () => Millis };

function traceOf(_room: RoomConnection, { clock }: ClientWorld): Traced {
  const trace = new RoomTrace();
  const now = (): Millis => clock.now();
  return {
    trace,
    now,
    receiveInput: (input) => trace.receiveInput(input, now()),
    receiveSent: (frame) => trace.receiveSent(frame, now()),
    end: () => {}, // The panel shows the last state until it is removed.
  };
}

/** Shows the panel of a room. Frames count from the first call on. Returns a function that removes the panel. */
export function showDevtools<State extends object>(room: RoomConnection | YjsProvider<State>, { isOpen = false } = {}): () => void {
  const traced = room.part(traceOf);
  const host = document.createElement("coroom-devtools");
  const root = host.attachShadow({ mode: "open" });
  const [details, summary, section] = [element("details"), element("summary"), element("section")];
  details.open = isOpen;
  details.append(summary, section);
  root.append(element("style", STYLE), details);
  document.body.append(host);

  const render = (): void => {
    summary.textContent = `${room.room}: ${room.status}, ${room.saved ? "saved" : `${room.unsavedEdits} unsaved`}`;
    if (details.open) section.replaceChildren(...sectionsOf(room, traced));
  };
  details.addEventListener("toggle", render);
  const timer = setInterval(render, RENDER_MS);
  render();
  return () => {
    clearInterval(timer);
    host.remove();
  };
}

function sectionsOf<State extends object>(room: RoomConnection | YjsProvider<State>, { trace, now }: Traced): HTMLElement[] {
  const { outage, rights, mode } = room;
  const lanes = Object.entries(trace.counts) as [TracedLane, { in: number; out: number }][];
  return [
    ...titled("Connection", [
      ["status", room.status],
      ...(outage === undefined ? [] : [["why", outage.why] as Row, ["retry in", `${Math.ceil(outage.retryInMs / 1000)} s`] as Row]),
      ["client", room.client ?? "–"],
      ["rights", [rights.read && "read", rights.write && "write"].filter(Boolean).join(", ") || "–"],
    ]),
    ...titled("Edits", [
      ["seq", `${room.seq}${room.synced ? "" : ", not synced"}`],
      ["unacked", room.unsavedEdits],
      ["saved", `${room.saved}${room.saved === room.stored ? "" : `, stored ${room.stored}`}`],
      ["log", room.saving],
    ]),
    ...titled(
      "Lanes",
      lanes.map(([lane, counts]): Row => [lane, `${counts.out} out`, `${counts.in} in`]),
    ),
    ...titled(
      `Participants: ${room.participants.size}${mode === undefined ? "" : `, ${mode.mode}, at most ${mode.presencePerSecond}/s`}`,
      [...room.participants.values()].map(({ name, user, role, self, fields }): Row => [
        self ? `${name || user} (you)` : name || user,
        role,
        Object.keys(fields).join(", "),
      ]),
    ),
    ...titled(
      "Last frames",
      trace.frames
        .slice(-FRAMES_SHOWN)
        .reverse()
        .map(({ at, direction, text }): Row => [`${((now() - at) / 1000).toFixed(1)} s`, direction === "in" ? "←" : "→", text]),
    ),
  ];
}

function titled(title: string, rows: readonly Row[]): HTMLElement[] {
  const table = element("table");
  for (const row of rows) table.insertRow().append(...row.map((cell) => element("td", String(cell))));
  return [element("h2", title), table];
}

/** Text is set as text: names and fields come from other people. */
function element<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, text = ""): HTMLElementTagNameMap[Tag] {
  const created = document.createElement(tag);
  created.textContent = text;
  return created;
}
