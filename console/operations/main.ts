/** The operations console, wired: asks again every other second for as long as somebody looks, and shows what it is told. */

import { element } from "../io/element.ts";
import type { Ban, EventsSince, Fleet, Member, Room, RoomName, RoomPage } from "./answers.ts";
import * as deeds from "./deeds.ts";
import { fold, NOTHING_YET } from "./happenings.ts";
import { type Ask, type Asked, askerWith } from "./io/ask.ts";
import { bansView } from "./io/bans-view.ts";
import { confirmDialog } from "./io/confirm.ts";
import { eventsView } from "./io/events-view.ts";
import { fleetView } from "./io/fleet-view.ts";
import { say } from "./io/keyed-rows.ts";
import { roomView } from "./io/room-view.ts";
import { roomsView } from "./io/rooms-view.ts";
import { forgetPass, keptPass, signInView } from "./io/sign-in-view.ts";
import { knownFleet } from "./known-fleet.ts";
import { after, ASKING, nextAskMs, type Outcome, type Reach, reachRemark } from "./reach.ts";

/** They are many, and seldom change: asked for at every so many rounds. */
const ROUNDS_PER_BANS = 5;

let ask: Ask = askerWith("");
let reach: Reach = ASKING;
let happenings = NOTHING_YET;
let fleet: Fleet | undefined;
let page: RoomPage | undefined;
/** Until it is told otherwise. */
let isOperator = true;
let rounds = 0;
/** The next round; and those that another sign-in, or another page, has made old. */
let next: ReturnType<typeof setTimeout> | undefined;
let turn = 0;

const confirm = confirmDialog();
const perform = (plan: deeds.Plan): void =>
  confirm({ ...plan, act: () => ask<Readonly<Record<string, unknown>>>(plan.path, plan.body).finally(askNow) });
const takers = (): number => (fleet?.servers ?? []).filter(({ draining }) => !draining).length;
const showEvents = eventsView();
const showBans = bansView((ban) => perform(deeds.lift(ban)));
const room = roomView({
  move: (...given) => perform(deeds.move(...given)),
  kick: (...given) => perform(deeds.kick(...given)),
  holdBack: (...given) => perform(deeds.holdBack(...given)),
});
const showFleet = fleetView({
  drainServer: (server) => perform(deeds.drainServer(server, takers() - 1)),
  drainGateway: (gateway) =>
    perform(
      deeds.drainGateway(
        gateway,
        (fleet?.gateways ?? []).filter(({ gateway: other, state }) => other !== gateway.gateway && state === "ready").length,
      ),
    ),
});
const openRoom = (name: RoomName): void => {
  room.begin(name);
  askNow();
};
const rooms = roomsView(openRoom, askNow);
const showSignIn = signInView(begin);

element("sign-out", HTMLButtonElement).addEventListener("click", () => end(""));
document.addEventListener("visibilitychange", () => document.hidden || askNow());
const kept = keptPass();
if (kept === undefined) showSignIn("");
else begin(kept);

function begin(pass: string): void {
  [ask, reach, happenings, fleet, page, isOperator, rounds] = [askerWith(pass), ASKING, NOTHING_YET, undefined, undefined, true, 0];
  for (const id of ["operations", "sign-out", "reach"]) element(id, HTMLElement).hidden = false;
  showReach();
  askNow();
}

function end(problem: string): void {
  turn += 1;
  clearTimeout(next);
  forgetPass();
  for (const id of ["operations", "sign-out", "reach", "environment"]) element(id, HTMLElement).hidden = true;
  for (const id of ["room", "confirm"]) element(id, HTMLDialogElement).close();
  showSignIn(problem);
}

function askNow(): void {
  clearTimeout(next);
  void round(++turn);
}

/** Nothing is asked while nobody looks. What is answered first is shown first. */
async function round(of: number): Promise<void> {
  if (document.hidden || element("operations", HTMLElement).hidden) return;
  const [askedRooms, askedFleet, askedEvents] = await Promise.all([
    taken(of, ask<RoomPage>(`/rooms?${rooms.query()}`), (body) => (page = body)),
    taken(of, ask<Fleet>("/fleet"), (body) => (fleet = knownFleet(fleet, body))),
    taken(of, ask<EventsSince>(`/events?after=${happenings.last}`), (body) => (happenings = fold(happenings, body))),
  ]);
  const askedBans = rounds % ROUNDS_PER_BANS === 0 ? await ask<{ sanctions: readonly Ban[] }>("/bans") : undefined;
  if (of !== turn) return;
  if (askedRooms.kind === "refused" && [401, 403].includes(askedRooms.status)) return end(askedRooms.message);
  isOperator = !(askedFleet.kind === "refused" && askedFleet.error === "not-an-operator");
  if (askedBans?.kind === "answered") showBans(askedBans.body.sanctions);
  await showOpenRoom(of);
  if (of !== turn) return;
  rounds += 1;
  const outcome = outcomeOf([askedRooms, ...(isOperator ? [askedFleet] : []), askedEvents]);
  reach = after(reach, outcome, new Date());
  show();
  next = setTimeout(askNow, nextAskMs(reach, outcome));
}

async function taken<Body>(of: number, asking: Promise<Asked<Body>>, take: (body: Body) => void): Promise<Asked<Body>> {
  const asked = await asking;
  if (of !== turn || asked.kind !== "answered") return asked;
  take(asked.body);
  show();
  return asked;
}

function show(): void {
  if (page !== undefined) rooms.show(page, !isOperator);
  if (!isOperator) showFleet("not-for-you", page, reach, []);
  else if (fleet !== undefined) showFleet(fleet, page, reach, happenings.takeovers);
  showEvents(happenings);
  showReach();
}

async function showOpenRoom(of: number): Promise<void> {
  const open = room.open();
  if (open === undefined) return;
  const [place, tenant] = [`/rooms/${encodeURIComponent(open.room)}`, `?${new URLSearchParams({ tenant: open.tenant })}`];
  const [asked, members] = await Promise.all([
    ask<Room>(`${place}${tenant}`),
    ask<{ members: readonly Member[] }>(`${place}/members${tenant}`),
  ]);
  if (of !== turn || room.open() !== open) return;
  if (asked.kind === "answered") room.show(asked.body, members.kind === "answered" ? members.body.members : undefined, fleet);
  else if (asked.kind === "refused" && asked.error === "not-open") room.show("gone", undefined, fleet);
}

/** The worst of them. What is refused was answered, as by a gateway without NATS, which hears of no room. */
function outcomeOf(asked: readonly Asked<unknown>[]): Outcome {
  const tooFast = asked.find((each) => each.kind === "too-fast");
  if (tooFast !== undefined) return tooFast;
  const isLost = asked.some((each) => each.kind === "unreachable");
  return { kind: isLost ? "unreachable" : "answered" };
}

function showReach(): void {
  const { tone, text } = reachRemark(reach);
  const place = element("reach", HTMLElement);
  place.dataset["tone"] = tone;
  say(place.querySelector("span")!, text);
  element("operations", HTMLElement).toggleAttribute("data-old", reach.state === "lost" || fleet?.reachesNats === false);
}
