/**
 * The canvas: shapes from the document, other people's pointers from the room's presence. What is being dragged is
 * presence, at the pace of a hand; where it is dropped is an edit. Presence is not edits.
 */

import type { CoroomProvider, Point } from "@coroom/client";

import { type Camera, cameraOn, cameraOver, panned, toCanvas, viewportOf, zoomed } from "../camera.ts";
import { SHAPE_KINDS, type Shape, type ShapeKind, Shapes } from "../shapes.ts";
import type { Crowd } from "./crowd.ts";
import { element } from "./element.ts";
import { watchHands } from "./hands.ts";
import { pointersView } from "./pointers-view.ts";
import { type Hold, ShapesView } from "./shapes-view.ts";

/** Others keep showing a shape where it was dropped until the edit has had time to reach them. */
const HOLD_AFTER_DROP_MS = 500;
const ARROW_STEP = 10;
const ZOOM_STEP = 1.25;

/** `colour`: of the reader, for what they add. */
export function openCanvas(provider: CoroomProvider, crowd: Crowd, colour: () => number): { setWritable(writable: boolean): void } {
  const stage = element("stage", HTMLElement);
  const world = element("world", HTMLElement);
  const shapes = new Shapes(provider.doc);
  const view = new ShapesView(element("shapes", HTMLElement));
  const own = new Map<string, Hold>();
  let camera: Camera = cameraOver(sizeOf(stage));
  let writable = false;

  const draw = (): void => {
    const all = shapes.all();
    element("canvas-hint", HTMLElement).hidden = all.length > 0;
    view.draw(all, new Map([...heldByOthers(crowd), ...own]));
  };
  const look = (next: Camera): void => {
    camera = next;
    world.style.transform = `scale(${camera.zoom}) translate(${-camera.x}px, ${-camera.y}px)`;
    stage.style.setProperty("--zoom", String(camera.zoom));
    stage.style.setProperty("--ground-x", `${-camera.x * camera.zoom}px`);
    stage.style.setProperty("--ground-y", `${-camera.y * camera.zoom}px`);
    element("zoom", HTMLElement).textContent = `${Math.round(camera.zoom * 100)}%`;
    provider.presence.set({ viewport: viewportOf(camera, sizeOf(stage)) });
  };
  const middle = (): Point => ({ x: stage.clientWidth / 2, y: stage.clientHeight / 2 });
  const drop = (id: string, place: Point): void => {
    shapes.move(id, place);
    setTimeout(() => {
      if (own.size === 0) provider.presence.set({ holding: null });
    }, HOLD_AFTER_DROP_MS);
  };

  watchHands(stage, {
    pointed: (at) => provider.presence.set({ cursor: at === undefined ? null : toCanvas(camera, at) }),
    pannedBy: (pixels) => look(panned(camera, pixels)),
    zoomedBy: (factor, at) => look(zoomed(camera, factor, at)),
    draggedBy: (id, pixels) => {
      const from = own.get(id)?.place ?? find(shapes, id);
      if (from === undefined || !writable) return;
      const place = { x: from.x + pixels.x / camera.zoom, y: from.y + pixels.y / camera.zoom };
      own.set(id, { place, person: undefined });
      provider.presence.set({ holding: { shape: id, place: { x: Math.round(place.x), y: Math.round(place.y) } } });
      draw();
    },
    dropped: (id) => {
      const hold = own.get(id);
      own.delete(id);
      if (hold !== undefined) drop(id, hold.place);
      draw();
    },
  });
  const write = (id: string): void => {
    if (writable) view.edit(id, (text) => shapes.write(id, text));
  };
  stage.addEventListener("dblclick", ({ target }) => {
    const id = shapeAt(target);
    if (id !== undefined) write(id);
  });
  stage.addEventListener("keydown", (event) => {
    const id = shapeAt(event.target);
    const shape = id === undefined || isWritten(event.target) ? undefined : find(shapes, id);
    if (isWritten(event.target) && event.key === "Escape") event.target.blur();
    if (shape === undefined || !writable || !act(event.key, shape)) return;
    event.preventDefault();
  });
  const act = (key: string, { id, x, y }: Shape): boolean => {
    const step = ARROWS[key];
    if (step !== undefined) drop(id, { x: x + step.x * ARROW_STEP, y: y + step.y * ARROW_STEP });
    else if (key === "Delete" || key === "Backspace") shapes.remove(id);
    else if (key === "Enter") write(id);
    else return false;
    return true;
  };

  const add = (kind: ShapeKind): void => {
    const id = Math.random().toString(36).slice(2, 12);
    const at = toCanvas(camera, middle());
    const aside = () => (Math.random() - 0.5) * 240; // So that the next does not hide it.
    shapes.add(id, kind, { x: at.x + aside(), y: at.y + aside() }, colour());
    if (kind === "note") write(id);
  };
  for (const kind of SHAPE_KINDS) element(`add-${kind}`, HTMLButtonElement).addEventListener("click", () => add(kind));
  element("zoom-in", HTMLButtonElement).addEventListener("click", () => look(zoomed(camera, ZOOM_STEP, middle())));
  element("zoom-out", HTMLButtonElement).addEventListener("click", () => look(zoomed(camera, 1 / ZOOM_STEP, middle())));
  element("zoom-all", HTMLButtonElement).addEventListener("click", () => look(cameraOn(shapes.all(), sizeOf(stage))));

  pointersView(element("pointers", HTMLElement), crowd);
  shapes.observe(draw);
  const holders = new Set<string>();
  crowd.onShown((ids) => {
    const touched = ids.filter((id) => holders.has(id) || crowd.people.get(id)?.holding !== undefined); // Most changes are of pointers.
    for (const id of touched) {
      if (crowd.people.get(id)?.holding === undefined) holders.delete(id);
      else holders.add(id);
    }
    if (touched.length > 0) draw();
  });
  let seen = false;
  new ResizeObserver(() => {
    const size = sizeOf(stage);
    if (size.width === 0) return provider.presence.set({ viewport: null }); // Another tab of a narrow page is in front.
    look(seen ? camera : cameraOver(size));
    seen = true;
  }).observe(stage);
  draw();
  return {
    setWritable: (may) => {
      writable = may;
      for (const kind of SHAPE_KINDS) element(`add-${kind}`, HTMLButtonElement).disabled = !may;
    },
  };
}

const ARROWS: Readonly<Record<string, Point>> = { ArrowLeft: { x: -1, y: 0 }, ArrowRight: { x: 1, y: 0 }, ArrowUp: { x: 0, y: -1 }, ArrowDown: { x: 0, y: 1 } };

function heldByOthers({ people }: Crowd): [string, Hold][] {
  return [...people.values()].flatMap((person) => (person.self || person.holding === undefined ? [] : [[person.holding.shape, { place: person.holding.place, person }] as const]));
}

function find(shapes: Shapes, id: string): Shape | undefined {
  return shapes.all().find((shape) => shape.id === id);
}

function shapeAt(target: EventTarget | null): string | undefined {
  return target instanceof Element ? target.closest<HTMLElement>(".shape")?.dataset["id"] : undefined;
}

function isWritten(target: EventTarget | null): target is HTMLElement {
  return target instanceof HTMLElement && target.isContentEditable;
}

function sizeOf({ clientWidth, clientHeight }: HTMLElement): { width: number; height: number } {
  return { width: clientWidth, height: clientHeight };
}
