/**
 * The entry point `@coroom/client/devtools`: a panel in the page for developers, which shows a room's connection, seqs,
 * lanes, participants and last frames. It has its own styles in a shadow root. While it is open, it replaces only the parts
 * that have changed, so that a selected text stays selected.
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
type Table = { readonly title: string; readonly rows: readonly Row[] };

/** A room's frames from the first panel on. */
type Traced = RoomPart & { readonly trace: RoomTrace; readonly startedAt: Millis };

function traceOf(_room: RoomConnection, { clock }: ClientWorld): Traced {
  const trace = new RoomTrace();
  return {
    trace,
    startedAt: clock.now(),
    receiveInput: (input) => trace.receiveInput(input, clock.now()),
    receiveSent: (frame) => trace.receiveSent(frame, clock.now()),
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
  section.tabIndex = 0; // The keyboard can scroll only what has the focus.
  section.ariaLabel = `State of the room ${room.room}`;
  details.append(summary, section);
  root.append(element("style", STYLE), details);
  document.body.append(host);

  const drawn: string[] = [];
  const render = (): void => {
    const status = `${room.room}: ${room.status}, ${room.saved ? "saved" : `${room.unsavedEdits} unsaved`}`;
    if (summary.textContent !== status) summary.textContent = status;
    if (!details.open) return;
    for (const [index, table] of tablesOf(room, traced).entries()) {
      const content = JSON.stringify(table);
      if (drawn[index] === content) continue;
      drawn[index] = content;
      const part = drawTable(table);
      if (index < section.children.length) section.children[index]!.replaceWith(part);
      else section.append(part);
    }
  };
  details.addEventListener("toggle", render);
  const timer = setInterval(render, RENDER_MS);
  render();
  return () => {
    clearInterval(timer);
    host.remove();
  };
}

function tablesOf<State extends object>(room: RoomConnection | YjsProvider<State>, { trace, startedAt }: Traced): readonly Table[] {
  const { outage, rights, mode } = room;
  const lanes = Object.entries(trace.counts) as [TracedLane, { in: number; out: number }][];
  return [
    {
      title: "Connection",
      rows: [
        ["status", room.status],
        ...(outage === undefined ? [] : [["why", outage.why] as Row, ["retry in", `${Math.ceil(outage.retryInMs / 1000)} s`] as Row]),
        ["client", room.client ?? "–"],
        ["rights", [rights.read && "read", rights.write && "write"].filter(Boolean).join(", ") || "–"],
      ],
    },
    {
      title: "Edits",
      rows: [
        ["seq", `${room.seq}${room.synced ? "" : ", not synced"}`],
        ["unacked", room.unsavedEdits],
        ["saved", `${room.saved}${room.saved === room.stored ? "" : `, stored ${room.stored}`}`],
        ["log", room.saving],
      ],
    },
    { title: "Lanes", rows: lanes.map(([lane, counts]): Row => [lane, `${counts.out} out`, `${counts.in} in`]) },
    {
      title: `Participants: ${room.participants.size}${mode === undefined ? "" : `, ${mode.mode}, at most ${mode.presencePerSecond}/s`}`,
      rows: [...room.participants.values()].map(({ name, user, role, self, fields }): Row => [
        self ? `${name || user} (you)` : name || user,
        role,
        Object.keys(fields).join(", "),
      ]),
    },
    {
      title: "Last frames, seconds after the first panel",
      rows: trace.frames
        .slice(-FRAMES_SHOWN)
        .reverse()
        .map(({ at, direction, text }): Row => [`${((at - startedAt) / 1000).toFixed(1)} s`, direction === "in" ? "←" : "→", text]),
    },
  ];
}

function drawTable({ title, rows }: Table): HTMLElement {
  const [part, table] = [element("div"), element("table")];
  for (const row of rows) table.insertRow().append(...row.map((cell) => element("td", String(cell))));
  part.append(element("h2", title), table);
  return part;
}

/** Text is set as text: names and fields come from other people. */
function element<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, text = ""): HTMLElementTagNameMap[Tag] {
  const created = document.createElement(tag);
  created.textContent = text;
  return created;
}
