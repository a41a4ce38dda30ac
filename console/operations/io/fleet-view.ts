/** Shows servers, gateways, placement and the overall state. */

import { element, tagged } from "../../io/element.ts";
import type { FleetAnswer, FleetGateway, RoomPageAnswer, FleetServer, HealthTone } from "../answers.ts";
import type { EventRows } from "../event-rows.ts";
import { counted, percent, shortName, droppedAt } from "../format.ts";
import { verdictOf } from "../health.ts";
import type { PollState } from "../polling.ts";
import { keyedRows, setNodes, setText } from "./keyed-rows.ts";

type FleetActions = { readonly drainServer: (server: FleetServer) => void; readonly drainGateway: (gateway: FleetGateway) => void };

const STATES: Readonly<Record<FleetGateway["state"], HealthTone>> = {
  "ready": "good",
  "draining": "warning",
  "slow": "warning",
  "degraded": "error",
  "misconfigured": "error",
  "log-full": "error",
};
const USED_SHARE_MAX = 0.8;

type ShowFleet = (
  fleet: FleetAnswer | "not-for-you",
  page: RoomPageAnswer | undefined,
  reach: PollState,
  events: Pick<EventRows, "takeovers" | "rows">,
) => void;

export function fleetView(actions: FleetActions): ShowFleet {
  const [verdict, title, facts, problems] = [
    element("verdict", HTMLElement),
    element("verdict-title", HTMLElement),
    element("verdict-facts", HTMLElement),
    element("verdict-problems", HTMLElement),
  ];
  const [environment, remark] = [element("environment", HTMLElement), element("servers-empty", HTMLElement)];
  const placement = element("placement", HTMLElement);
  const known = new Map<string, FleetServer | FleetGateway>();
  const servers = keyedRows<FleetServer>(
    element("servers", HTMLElement),
    ({ server }) => server,
    ({ server }) => processRow(server, () => actions.drainServer(known.get(server) as FleetServer)),
    (row, server) => {
      known.set(server.server, server);
      fillServer(row, server);
    },
  );
  const gateways = keyedRows<FleetGateway>(
    element("gateways", HTMLElement),
    ({ gateway }) => gateway,
    ({ gateway }) => processRow(gateway, () => actions.drainGateway(known.get(gateway) as FleetGateway)),
    (row, gateway) => {
      known.set(gateway.gateway, gateway);
      fillGateway(row, gateway);
    },
  );

  return (fleet, page, reach, { takeovers, rows }) => {
    const isForAll = fleet !== "not-for-you";
    for (const id of ["gateways-card", "placement-card", "verdict"]) element(id, HTMLElement).hidden = !isForAll;
    environment.hidden = !isForAll;
    if (!isForAll) {
      servers([]);
      return setText(
        remark,
        "Servers are shown to operators only. A token shows the rooms of its tenant. To see the servers, sign in with a pass from coroom ops pass.",
      );
    }
    setText(environment, `Environment: ${fleet.environment}`);
    environment.dataset["environment"] = fleet.environment;
    const judged = verdictOf(fleet, page, reach, takeovers, rows);
    verdict.dataset["tone"] = judged.tone;
    setText(title, judged.title);
    setNodes(
      facts,
      judged.facts.map((fact) => tagged("li", "", fact)),
    );
    setNodes(
      problems,
      judged.problems.map(({ tone, text }) => withTone(tagged("li", "", text), tone)),
    );
    known.clear();
    servers(fleet.servers);
    gateways(fleet.gateways);
    setText(remark, fleet.servers.length === 0 ? "No room server sends heartbeats." : "");
    placement.dataset["tone"] = fleet.placement.leader === undefined ? "warning" : "good";
    setText(
      placement.querySelector("span")!,
      fleet.placement.leader === undefined ? "No leader" : `Leader: ${shortName(fleet.placement.leader)}`,
    );
  };
}

export function withTone<Made extends HTMLElement>(made: Made, tone: HealthTone): Made {
  made.dataset["tone"] = tone;
  return made;
}

/** Creates a row with name, state, facts and the Drain button. */
function processRow(name: string, drain: () => void): HTMLElement {
  const button = tagged("button", "quiet", "Drain…") as HTMLButtonElement;
  button.type = "button";
  button.ariaLabel = `Drain ${name}`;
  button.addEventListener("click", drain);
  const label = tagged("span", "process-name", shortName(name));
  label.title = name;
  return tagged(
    "li",
    "",
    tagged("div", "line", tagged("span", "", label, " ", tagged("span", "tag")), button),
    tagged("div", "process-facts"),
  );
}

function fillServer(row: HTMLElement, { server, rooms, draining, host, zone, pool, used, hot, logObstacle }: FleetServer): void {
  const tone: HealthTone = draining || used > USED_SHARE_MAX ? "warning" : "good";
  if (logObstacle === undefined) fillState(row, draining ? "draining" : "ready", draining ? "warning" : "good", draining);
  else fillState(row, "log-full", STATES["log-full"], draining);
  const where = [host, zone, pool === "" ? "" : `pool ${pool}`].filter((part) => part !== "").join(" · ");
  setText(
    row.querySelector<HTMLElement>(".process-facts")!,
    [counted(rooms, "room"), `${percent(used)} of budget used`, where].filter((part) => part !== "").join(" · "),
  );
  const bar = row.querySelector<HTMLElement>(".used") ?? row.appendChild(tagged("div", "used"));
  bar.role = "meter";
  [bar.ariaLabel, bar.ariaValueNow] = [`Used budget of ${server}, in percent`, String(Math.round(used * 100))];
  bar.ariaValueMin = "0";
  bar.ariaValueMax = "100";
  bar.style.setProperty("--share", String(Math.min(1, Math.max(used, 0.01))));
  withTone(bar, tone);
  const hottest = hot[0];
  const why = row.querySelector<HTMLElement>(".why") ?? row.appendChild(tagged("div", "why"));
  why.hidden = hottest === undefined;
  if (hottest !== undefined) setText(why, `Busiest room: ${hottest.room}, ${percent(hottest.share)}`);
}

function fillGateway(row: HTMLElement, { connections, rooms, shedLevel, state }: FleetGateway): void {
  fillState(row, state, STATES[state], state === "draining");
  setText(
    row.querySelector<HTMLElement>(".process-facts")!,
    [counted(connections, "connection"), counted(rooms, "room"), ...(shedLevel === 0 ? [] : [`drops ${droppedAt(shedLevel)}`])].join(" · "),
  );
}

function fillState(row: HTMLElement, state: string, tone: HealthTone, draining: boolean): void {
  const tag = row.querySelector<HTMLElement>(".tag")!;
  setText(tag, state);
  withTone(tag, tone);
  row.querySelector("button")!.hidden = draining;
}
