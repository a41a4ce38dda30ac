/** The dialog of one room: state, reason for its placement, members, and possible target servers. */

import { element, tagged } from "../../io/element.ts";
import type { FleetAnswer, ListedMember, RoomDetails, RoomName, FleetServer } from "../answers.ts";
import { ROOM_CHART, type ValuesOverTime } from "../charts.ts";
import { count, counted, percent, shortName, throttleOf } from "../format.ts";
import { timesOf } from "../event-rows.ts";
import { type ChartMark, chartView } from "./charts-view.ts";
import { openDialog } from "./kept-focus.ts";
import { keyedRows, setNodes, setText } from "./keyed-rows.ts";

type RoomActions = {
  readonly move: (room: RoomName, to: FleetServer) => void;
  readonly kick: (room: RoomName, member: ListedMember) => void;
  readonly makeReadOnly: (room: RoomName, member: ListedMember) => void;
  /** The user has closed the dialog. */
  readonly closed: () => void;
};
type RoomDialogView = {
  /** Undefined while no room is open. */
  readonly open: () => RoomName | undefined;
  readonly begin: (room: RoomName) => void;
  readonly end: () => void;
  readonly showOverTime: (values: ValuesOverTime, minutes: number, marks: readonly ChartMark[]) => void;
  readonly show: (room: RoomDetails | "gone", members: readonly ListedMember[] | undefined, fleet: FleetAnswer | undefined) => void;
};

const MEMBERS_MAX = 100;

export function roomView(actions: RoomActions): RoomDialogView {
  const [dialog, title, remark, facts, total] = [
    element("room", HTMLDialogElement),
    element("room-title", HTMLElement),
    element("room-remark", HTMLElement),
    element("room-facts", HTMLElement),
    element("members-count", HTMLElement),
  ];
  const [form, choice] = [element("move", HTMLFormElement), element("move-to", HTMLSelectElement)];
  const find = element("members-find", HTMLInputElement);
  const chart = chartView(ROOM_CHART);
  element("room-chart", HTMLElement).replaceChildren(chart.card);
  let here: RoomName | undefined;
  let listed: readonly ListedMember[] | undefined;
  let servers: readonly FleetServer[] = [];
  const members = keyedRows<ListedMember>(
    element("members", HTMLElement),
    ({ connection }) => connection,
    (member) => memberRow(member, (action) => here !== undefined && action(here, member), actions),
    () => {},
  );

  element("room-close", HTMLButtonElement).addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => {
    if (here === undefined) return;
    here = undefined;
    actions.closed();
  });
  const showMembers = (): void => {
    if (listed === undefined) return;
    const wanted = find.value.trim().toLowerCase();
    const found = listed.filter(({ user, name }) => `${user} ${name}`.toLowerCase().includes(wanted));
    members(found.slice(0, MEMBERS_MAX));
    const shown = found.length > MEMBERS_MAX ? `${count(found.length)} (first ${MEMBERS_MAX} shown)` : count(found.length);
    setText(total, found.length < listed.length ? `${shown} of ${count(listed.length)}` : shown);
  };
  find.addEventListener("input", showMembers);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const to = servers.find(({ server }) => server === choice.value);
    if (here !== undefined && to !== undefined) actions.move(here, to);
  });

  return {
    open: () => here,
    begin: (room) => {
      here = room;
      listed = undefined;
      find.value = "";
      chart.card.hidden = true;
      setText(title, room.room);
      facts.replaceChildren();
      members([]);
      form.hidden = true;
      setText(total, "");
      setText(remark, "Loading…");
      if (!dialog.open) openDialog(dialog);
    },
    end: () => {
      here = undefined;
      dialog.close();
    },
    showOverTime: chart.show,
    show: (room, answered, fleet) => {
      if (room === "gone") {
        setText(remark, "This room is no longer open.");
        form.hidden = true;
        return members([]);
      }
      setText(remark, "");
      setNodes(
        facts,
        factsOf(room).map(([name, value]) => tagged("div", "", tagged("dt", "", name), tagged("dd", "", value))),
      );
      servers = (fleet?.servers ?? []).filter(({ server, draining }) => server !== room.server && !draining);
      form.hidden = servers.length === 0;
      showChoice(choice, servers);
      if (answered === undefined) return;
      listed = answered;
      showMembers();
    },
  };
}

function factsOf({ tenant, server, epoch, mode, participants, heldBack, gateways, placed }: RoomDetails): [string, string][] {
  return [
    ["Tenant", tenant],
    ["Owned by", `${server}, epoch ${epoch}`],
    ["Replica", placed?.replica ?? "none"],
    ["Mode", `${mode}, ${counted(participants, "participant")}`],
    ["Throttled", heldBack === 0 ? "no" : throttleOf(heldBack)],
    ...gateways.map(({ gateway, members }): [string, string] => [`Gateway ${shortName(gateway)}`, counted(members, "member")]),
    ...(placed === undefined ? [] : [["Reason for placement", `${placed.reason} (${timesOf(placed, new Date())})`] as [string, string]]),
  ];
}

/** Updates only a changed list, so that an open list stays open. The chosen server stays chosen while it is listed. */
function showChoice(choice: HTMLSelectElement, servers: readonly FleetServer[]): void {
  const wanted = servers.map(({ server }) => server);
  if ([...choice.options].map(({ value }) => value).join() === wanted.join()) return;
  const chosen = choice.value;
  choice.replaceChildren(
    ...servers.map(({ server, rooms, used }) => {
      const option = document.createElement("option");
      [option.value, option.textContent] = [server, `${shortName(server)}: ${counted(rooms, "room")}, ${percent(used)} of budget used`];
      return option;
    }),
  );
  if (wanted.includes(chosen)) choice.value = chosen;
}

function memberRow(
  member: ListedMember,
  on: (action: (room: RoomName, member: ListedMember) => void) => void,
  actions: RoomActions,
): HTMLElement {
  const { user, name, write } = member;
  const who = tagged(
    "span",
    "who",
    name === "" ? user : name,
    ...(name === "" || name === user ? [] : [tagged("span", "of-tenant", user)]),
    ...(write ? [] : [tagged("span", "of-tenant", "read only")]),
  );
  const button = (label: string, act: () => void): HTMLElement => {
    const made = tagged("button", "quiet", label) as HTMLButtonElement;
    made.type = "button";
    made.ariaLabel = `${label} ${user}`;
    made.addEventListener("click", act);
    return made;
  };
  return tagged(
    "li",
    "",
    who,
    ...(write ? [button("Read only…", () => on(actions.makeReadOnly))] : []),
    button("Kick…", () => on(actions.kick)),
  );
}
