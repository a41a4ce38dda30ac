/**
 * Entry point of the operations console: polls the gateway every two seconds while the page is visible, and shows the
 * answers. The address of the page (`console-address.ts`) decides what is shown and requested.
 */

import { element } from "../io/element.ts";
import type {
  ListedBan,
  EventsAnswer,
  FleetAnswer,
  ListedMember,
  RoomDetails,
  RoomPageAnswer,
  RoomVitalsAnswer,
  VitalsAnswer,
} from "./answers.ts";
import * as actions from "./actions.ts";
import { addValues, askAfter, linesOf, NO_VALUES } from "./charts.ts";
import { addEvents, marksOf, NO_EVENTS, withEndedReporters } from "./event-rows.ts";
import { type AdminApi, type AdminResponse, adminApi } from "./io/admin-api.ts";
import { bansView } from "./io/bans-view.ts";
import { chartsPage } from "./io/charts-page.ts";
import { confirmDialog } from "./io/confirm.ts";
import { eventsView } from "./io/events-view.ts";
import { fleetView } from "./io/fleet-view.ts";
import { setText } from "./io/keyed-rows.ts";
import { roomView } from "./io/room-view.ts";
import { roomsView } from "./io/rooms-view.ts";
import { viewTabs } from "./io/view-tabs.ts";
import { forgetPass, keptPass, signInView } from "./io/sign-in-view.ts";
import { type ConsoleAddress, consoleAddress, parseConsoleAddress } from "./console-address.ts";
import { nextPollState, FIRST_POLL, nextPollMs, type PollOutcome, type PollState, pollRemark, mergeFleet } from "./polling.ts";

/** Bans are many and change rarely: requested in every fifth round. */
const ROUNDS_PER_BANS = 5;

let request: AdminApi = adminApi("");
let poll: PollState = FIRST_POLL;
let events = NO_EVENTS;
let fleet: FleetAnswer | undefined;
let page: RoomPageAnswer | undefined;
let address = parseConsoleAddress(location.hash);
/** Of the chosen process, or of all. */
let vitals = NO_VALUES;
let processes: VitalsAnswer["processes"] = [];
let roomVitals = NO_VALUES;
/** Until an answer proves otherwise. */
let isOperator = true;
let rounds = 0;
/** Timer of the next round. `turn` identifies the current round: answers of an older round are ignored. */
let next: ReturnType<typeof setTimeout> | undefined;
let turn = 0;

const confirm = confirmDialog();
const perform = (plan: actions.PlannedAction): void =>
  confirm({
    ...plan,
    act: () =>
      request<Readonly<Record<string, unknown>>>(plan.path, plan.body).finally(() => {
        rounds = 0; // The action may have changed the bans.
        pollNow();
      }),
  });
const acceptingServers = (): number => (fleet?.servers ?? []).filter(({ draining }) => !draining).length;
/** Each change but a search is a step that the button Back undoes. */
const change = (to: Partial<ConsoleAddress>): void => {
  const [next, isSearch] = [{ ...address, ...to }, "find" in to];
  history[isSearch ? "replaceState" : "pushState"](null, "", consoleAddress(next) || location.pathname);
  if (!isSearch) return receiveAddress(next);
  address = next;
  showEvents(shownRows(), address); // No request for each typed letter: the events are here.
};
const shownRows = () => withEndedReporters(events, fleet);
const showEvents = eventsView(change);
const showCharts = chartsPage(change);
const showTabs = viewTabs();
const showBans = bansView((ban) => perform(actions.planLift(ban)));
const room = roomView({
  move: (...given) => perform(actions.planMove(...given)),
  kick: (...given) => perform(actions.planKick(...given)),
  makeReadOnly: (...given) => perform(actions.planReadOnly(...given)),
  closed: () => change({ room: undefined }),
});
const showFleet = fleetView({
  drainServer: (server) => perform(actions.planServerDrain(server, acceptingServers() - 1)),
  drainGateway: (gateway) =>
    perform(
      actions.planGatewayDrain(
        gateway,
        (fleet?.gateways ?? []).filter(({ gateway: other, state }) => other !== gateway.gateway && state === "ready").length,
      ),
    ),
});
const rooms = roomsView((name) => change({ room: name }), pollNow);
const showSignIn = signInView(signIn);

element("sign-out", HTMLButtonElement).addEventListener("click", () => signOut(""));
window.addEventListener("popstate", () => receiveAddress(parseConsoleAddress(location.hash)));
document.addEventListener("visibilitychange", () => document.hidden || pollNow());
const kept = keptPass();
if (kept === undefined) showSignIn("");
else signIn(kept);

function signIn(pass: string): void {
  [request, poll, events, fleet, page, isOperator, rounds] = [adminApi(pass), FIRST_POLL, NO_EVENTS, undefined, undefined, true, 0];
  for (const id of ["operations", "sign-out", "reach"]) element(id, HTMLElement).hidden = false;
  [vitals, processes] = [NO_VALUES, []];
  showPollState();
  receiveAddress(address);
}

function signOut(problem: string): void {
  turn += 1;
  clearTimeout(next);
  forgetPass();
  for (const id of ["operations", "sign-out", "reach", "environment"]) element(id, HTMLElement).hidden = true;
  room.end(); // The address keeps the room for the next pass.
  element("confirm", HTMLDialogElement).close();
  showSignIn(problem);
}

function pollNow(): void {
  clearTimeout(next);
  void round(++turn);
}

function receiveAddress(to: ConsoleAddress): void {
  const before = address;
  address = to;
  if (before.process !== to.process) vitals = NO_VALUES;
  const isSameRoom = room.open()?.tenant === to.room?.tenant && room.open()?.room === to.room?.room;
  if (element("operations", HTMLElement).hidden) return;
  if (!isSameRoom) {
    roomVitals = NO_VALUES;
    if (to.room === undefined) room.end();
    else room.begin(to.room);
  }
  show();
  pollNow();
}

/** A hidden page sends no requests. Each answer is shown as soon as it arrives. */
async function round(of: number): Promise<void> {
  if (document.hidden || element("operations", HTMLElement).hidden) return;
  const [roomsResponse, fleetResponse, eventsResponse] = await Promise.all([
    receiveAnswer(of, request<RoomPageAnswer>(`/rooms?${rooms.query()}`), (body) => (page = body)),
    receiveAnswer(of, request<FleetAnswer>("/fleet"), (body) => (fleet = mergeFleet(fleet, body))),
    receiveAnswer(of, request<EventsAnswer>(`/events?after=${events.last}`), (body) => (events = addEvents(events, body))),
  ]);
  if (of !== turn) return;
  if (roomsResponse.kind === "refused" && [401, 403].includes(roomsResponse.status)) return signOut(roomsResponse.message);
  isOperator = !(fleetResponse.kind === "refused" && fleetResponse.error === "not-an-operator");
  const outcome = outcomeOf([roomsResponse, ...(isOperator ? [fleetResponse] : []), eventsResponse]);
  if (outcome.kind !== "unreachable") await askForMore(of); // Each further request would also wait, and delay the report.
  if (of !== turn) return;
  poll = nextPollState(poll, outcome, new Date());
  show();
  next = setTimeout(pollNow, nextPollMs(poll, outcome));
}

/** Requests what the page shows besides rooms, fleet and events. */
async function askForMore(of: number): Promise<void> {
  if (address.tab === "charts") await receiveAnswer(of, request<VitalsAnswer>(vitalsPath()), receiveVitals);
  const bansResponse = rounds % ROUNDS_PER_BANS === 0 ? await request<{ sanctions: readonly ListedBan[] }>("/bans") : undefined;
  if (of !== turn) return;
  if (bansResponse?.kind === "answered") showBans(bansResponse.body.sanctions);
  await showOpenRoom(of);
  if (of === turn) rounds += 1;
}

function vitalsPath(): string {
  return `/vitals?${new URLSearchParams({ after: String(askAfter(vitals)), ...(address.process === "" ? {} : { process: address.process }) })}`;
}

function receiveVitals(body: VitalsAnswer): void {
  vitals = addValues(vitals, { ...body, lines: linesOf(body) });
  ({ processes } = body);
}

async function receiveAnswer<Body>(
  of: number,
  asking: Promise<AdminResponse<Body>>,
  take: (body: Body) => void,
): Promise<AdminResponse<Body>> {
  const response = await asking;
  if (of !== turn || response.kind !== "answered") return response;
  take(response.body);
  show();
  return response;
}

function show(): void {
  if (page !== undefined) rooms.show(page, !isOperator);
  const rows = shownRows();
  if (!isOperator) showFleet("not-for-you", page, poll, { ...events, rows });
  else if (fleet !== undefined) showFleet(fleet, page, poll, { ...events, rows });
  showTabs(address, isOperator);
  showEvents(rows, address);
  if (address.tab === "charts") showCharts(vitals, processes, address, marksOf(rows));
  showPollState();
}

async function showOpenRoom(of: number): Promise<void> {
  const open = room.open();
  if (open === undefined) return;
  const [place, tenant] = [`/rooms/${encodeURIComponent(open.room)}`, `?${new URLSearchParams({ tenant: open.tenant })}`];
  const [response, members, overTime] = await Promise.all([
    request<RoomDetails>(`${place}${tenant}`),
    request<{ members: readonly ListedMember[] }>(`${place}/members${tenant}`),
    request<RoomVitalsAnswer>(`${place}/vitals${tenant}&after=${askAfter(roomVitals)}`),
  ]);
  if (of !== turn || room.open() !== open) return;
  if (overTime.kind === "answered") {
    const { participants, editsPerSecond, ...slots } = overTime.body;
    roomVitals = addValues(roomVitals, { ...slots, lines: new Map(Object.entries({ participants, editsPerSecond })) });
    room.showOverTime(roomVitals, address.minutes, marksOf(shownRows()));
  }
  if (response.kind === "answered") room.show(response.body, members.kind === "answered" ? members.body.members : undefined, fleet);
  else if (response.kind === "refused" && response.error === "not-open") room.show("gone", undefined, fleet);
}

/**
 * Returns the worst outcome. A rejected request counts as answered: a gateway without NATS rejects requests about
 * rooms.
 */
function outcomeOf(responses: readonly AdminResponse<unknown>[]): PollOutcome {
  const tooFast = responses.find((each) => each.kind === "too-fast");
  if (tooFast !== undefined) return tooFast;
  const isLost = responses.some((each) => each.kind === "unreachable");
  return { kind: isLost ? "unreachable" : "answered" };
}

function showPollState(): void {
  const { tone, text } = pollRemark(poll);
  const place = element("reach", HTMLElement);
  place.dataset["tone"] = tone;
  setText(place.querySelector("span")!, text);
  element("operations", HTMLElement).toggleAttribute("data-old", poll.state === "lost" || fleet?.reachesNats === false);
}
