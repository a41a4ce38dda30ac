/** One room in a sheet: how it is, why it is where it is, who is in it, and where it could go. */

import { element } from "../../io/element.ts";
import { tagged } from "../../io/tagged.ts";
import type { Fleet, Member, Room, RoomName, Server } from "../answers.ts";
import { clockTime, count, counted, percent, shortName } from "../format.ts";
import { keyedRows, say } from "./keyed-rows.ts";

export type RoomDeeds = {
  readonly move: (room: RoomName, to: Server) => void;
  readonly kick: (room: RoomName, member: Member) => void;
  readonly holdBack: (room: RoomName, member: Member) => void;
};
export type RoomView = {
  /** Undefined while none is open. */
  readonly open: () => RoomName | undefined;
  readonly begin: (room: RoomName) => void;
  readonly show: (room: Room | "gone", members: readonly Member[] | undefined, fleet: Fleet | undefined) => void;
};

const MEMBERS_MAX = 100;

export function roomView(deeds: RoomDeeds): RoomView {
  const [dialog, title, remark, facts, total] = [
    element("room", HTMLDialogElement),
    element("room-title", HTMLElement),
    element("room-remark", HTMLElement),
    element("room-facts", HTMLElement),
    element("members-count", HTMLElement),
  ];
  const [form, choice] = [element("move", HTMLFormElement), element("move-to", HTMLSelectElement)];
  let here: RoomName | undefined;
  let servers: readonly Server[] = [];
  const members = keyedRows<Member>(
    element("members", HTMLElement),
    ({ connection }) => connection,
    (member) => memberRow(member, (deed) => here !== undefined && deed(here, member), deeds),
    () => {},
  );

  element("room-close", HTMLButtonElement).addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => (here = undefined));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const to = servers.find(({ server }) => server === choice.value);
    if (here !== undefined && to !== undefined) deeds.move(here, to);
  });

  return {
    open: () => here,
    begin: (room) => {
      here = room;
      title.textContent = room.room;
      facts.replaceChildren();
      members([]);
      form.hidden = true;
      say(total, "");
      say(remark, "Asking…");
      dialog.showModal();
    },
    show: (room, listed, fleet) => {
      if (room === "gone") {
        say(remark, "Nobody has this room open any more.");
        form.hidden = true;
        return members([]);
      }
      say(remark, "");
      facts.replaceChildren(...factsOf(room).map(([name, value]) => tagged("div", "", tagged("dt", "", name), tagged("dd", "", value))));
      servers = (fleet?.servers ?? []).filter(({ server, draining }) => server !== room.server && !draining);
      form.hidden = servers.length === 0;
      showChoice(choice, servers);
      if (listed === undefined) return;
      members(listed.slice(0, MEMBERS_MAX));
      say(total, listed.length > MEMBERS_MAX ? `${count(listed.length)}, the first ${MEMBERS_MAX} shown` : count(listed.length));
    },
  };
}

function factsOf({ tenant, server, epoch, mode, participants, heldBack, gateways, placed }: Room): [string, string][] {
  return [
    ["Tenant", tenant],
    ["Owned by", `${server}, epoch ${epoch}`],
    ["Warm copy", placed?.replica ?? "none"],
    ["Mode", `${mode}, ${counted(participants, "participant")}`],
    ["Held back", heldBack === 0 ? "no" : `level ${heldBack}`],
    ...gateways.map(({ gateway, members }): [string, string] => [`On ${shortName(gateway)}`, counted(members, "member")]),
    ...(placed === undefined ? [] : [["Why it is there", `${placed.reason} (${clockTime(new Date(placed.at))})`] as [string, string]]),
  ];
}

/** Only where it is another choice: one that is being made is left alone. */
function showChoice(choice: HTMLSelectElement, servers: readonly Server[]): void {
  const wanted = servers.map(({ server }) => server);
  if ([...choice.options].map(({ value }) => value).join() === wanted.join()) return;
  choice.replaceChildren(
    ...servers.map(({ server, rooms, used }) => {
      const option = document.createElement("option");
      [option.value, option.textContent] = [server, `${shortName(server)}: ${counted(rooms, "room")}, ${percent(used)} used`];
      return option;
    }),
  );
}

function memberRow(member: Member, on: (deed: (room: RoomName, member: Member) => void) => void, deeds: RoomDeeds): HTMLElement {
  const { user, name, write } = member;
  const who = tagged(
    "span",
    "who",
    name === "" ? user : name,
    ...(name === "" || name === user ? [] : [tagged("span", "of-tenant", user)]),
    ...(write ? [] : [tagged("span", "of-tenant", "reading")]),
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
    ...(write ? [button("Read only…", () => on(deeds.holdBack))] : []),
    button("Kick…", () => on(deeds.kick)),
  );
}
