/** Shows open rooms in pages, and the search fields. */

import { element, tagged } from "../../io/element.ts";
import type { ListedRoomRow, RoomName, RoomPageAnswer } from "../answers.ts";
import { count, rate, shortName, throttleOf } from "../format.ts";
import { withTone } from "./fleet-view.ts";
import { keepFocus } from "./kept-focus.ts";
import { keyedRows, setNodes, setText } from "./keyed-rows.ts";

const TYPED_MS = 250;
const PAGE_ROOMS = 25;

type RoomsView = { readonly query: () => string; readonly show: (page: RoomPageAnswer, tenantIsMine: boolean) => void };

/** `changed`: called when another page or search must be requested. */
export function roomsView(open: (room: RoomName) => void, changed: () => void): RoomsView {
  const [tenant, name, form] = [
    element("search-tenant", HTMLInputElement),
    element("search-room", HTMLInputElement),
    element("search", HTMLFormElement),
  ];
  const [empty, total, pager, number] = [
    element("rooms-empty", HTMLElement),
    element("rooms-count", HTMLElement),
    element("pager", HTMLElement),
    element("page-number", HTMLElement),
  ];
  const [back, on] = [element("page-back", HTMLButtonElement), element("page-on", HTMLButtonElement)];
  const rows = keyedRows<ListedRoomRow>(
    element("rooms", HTMLElement),
    ({ tenant: of, room }) => `${of}.${room}`,
    (room) => emptyRow(room, open),
    fill,
  );
  /** Cursors of the pages before this one. */
  let cursors: string[] = [];
  let next: string | undefined;
  let shown: RoomPageAnswer | undefined;
  /** Until its successor is answered, the page that the user left stays as it is: other answers show it again. */
  let left: RoomPageAnswer | undefined;
  let typing: ReturnType<typeof setTimeout> | undefined;

  const turn = (to: string[]): void => {
    cursors = to;
    left = shown;
    changed();
  };
  const search = (): void => turn([]);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(search, TYPED_MS);
  });
  back.addEventListener("click", () => turn(cursors.slice(0, -1)));
  on.addEventListener("click", () => {
    if (shown !== left && next !== undefined) turn([...cursors, next]);
  });

  const wanted = (): { tenant: string; search: string } => ({ tenant: tenant.value.trim(), search: name.value.trim() });
  const whyEmpty = (): string => {
    const { tenant: ofTenant, search: named } = wanted();
    if (cursors.length > 0) return "No more rooms. Go back to the previous page.";
    return ofTenant !== "" || named !== "" ? "No open room matches the search." : "No room is open. A room opens when somebody joins it.";
  };

  return {
    query: () => {
      const asked = Object.entries({ limit: String(PAGE_ROOMS), ...wanted(), after: cursors.at(-1) ?? "" });
      return String(new URLSearchParams(asked.filter(([, value]) => value !== "")));
    },
    show: (page, tenantIsMine) => {
      tenant.hidden = tenantIsMine;
      if (page === left) return;
      shown = page;
      next = page.next;
      rows(page.rooms);
      setText(total, count(page.matching));
      setText(empty, page.rooms.length > 0 ? "" : whyEmpty());
      const restoreFocus = keepFocus();
      pager.hidden = cursors.length === 0 && next === undefined;
      [back.disabled, on.disabled] = [cursors.length === 0, next === undefined];
      restoreFocus(); // Next is disabled on the last page.
      setText(number, `Page ${cursors.length + 1} of ${Math.max(cursors.length + 1, Math.ceil(page.matching / PAGE_ROOMS))}`);
    },
  };
}

function emptyRow({ tenant, room }: ListedRoomRow, open: (room: RoomName) => void): HTMLElement {
  const name = tagged("button", "row-name", room) as HTMLButtonElement;
  name.type = "button";
  name.title = room;
  name.addEventListener("click", () => open({ tenant, room }));
  const cells = ["", "number", "number", "", "number wide", "process-name"].map((kind) => tagged("td", kind));
  cells[0]!.append(name, tagged("span", "of-tenant", tenant));
  return tagged("tr", "", ...cells);
}

function fill(row: HTMLElement, { mode, participants, gateways, editsPerSecond, server, heldBack }: ListedRoomRow): void {
  const [, people, edits, modeCell, over, on] = [...row.children] as [
    HTMLElement,
    HTMLElement,
    HTMLElement,
    HTMLElement,
    HTMLElement,
    HTMLElement,
  ];
  setNodes(modeCell, [
    tagged("span", "tag", participants === 0 ? "idle" : mode),
    ...(heldBack === 0 ? [] : [withTone(tagged("span", "tag", "throttled"), "warning")]),
  ]);
  modeCell.title = heldBack === 0 ? "" : throttleOf(heldBack);
  setText(people, count(participants));
  setText(over, count(gateways));
  setText(edits, rate(editsPerSecond));
  setText(on, shortName(server));
  on.title = server;
}
