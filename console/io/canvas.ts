/**
 * The canvas: shapes come from the document, pointers of other people from presence. A shape that is being dragged is
 * presence. Only its final position is an edit, so that dragging creates no edits.
 */

import type { CoroomProvider, Point } from "@coroom/client";

import {
  type Camera,
  cameraAtFirst,
  cameraOn,
  cameraOver,
  cameraShowing,
  panned,
  type ViewSize,
  toCanvas,
  viewportOf,
  zoomed,
} from "../camera.ts";
import { type Shape, type ShapeKind, Shapes } from "../shapes.ts";
import type { RoomPeople } from "./room-people.ts";
import { element } from "./element.ts";
import { watchPointers } from "./pointer-input.ts";
import { watchShapeKeys, watchTools } from "./canvas-controls.ts";
import { type ShapeHold, ShapesView, pointersView } from "./canvas-view.ts";

/** After a drop, presence keeps the shape in place until the edit has reached the others. */
const HOLD_AFTER_DROP_MS = 500;
/** Maximum offset of a new shape, so that the next shape does not cover it. */
const ASIDE = 120;
/** Distance in pixels at which the reader's pointer shows the name of another person's pointer. */
const NAMED_WITHIN_PX = 24;

export class Canvas {
  readonly #provider: CoroomProvider;
  readonly #people: RoomPeople;
  readonly #colour: () => number;
  readonly #stage = element("stage", HTMLElement);
  readonly #world = element("world", HTMLElement);
  readonly #zoom = element("zoom", HTMLElement);
  readonly #hint = element("canvas-hint", HTMLElement);
  readonly #view = new ShapesView(element("shapes", HTMLElement));
  readonly #shapes: Shapes;
  readonly #tools: ReturnType<typeof watchTools>;
  /** Shapes that the reader drags. */
  readonly #own = new Map<string, ShapeHold>();
  /** Undefined until the canvas is visible for the first time. */
  #camera: Camera | undefined;
  #writable = false;
  /** The shape that keys and tools act on. */
  #chosen: string | undefined;

  /** `colour`: colour of the reader, for new shapes. */
  constructor(provider: CoroomProvider, people: RoomPeople, colour: () => number) {
    this.#provider = provider;
    this.#people = people;
    this.#colour = colour;
    this.#shapes = new Shapes(provider.doc);
    this.#tools = watchTools({
      add: (kind) => this.#add(kind),
      remove: () => this.#chosen !== undefined && this.#remove(this.#chosen),
      zoom: (factor) => this.#zoomBy(factor, this.#middle),
      seeAll: () => this.#look(cameraOn(this.#shapes.all(), this.#size)),
    });
    watchShapeKeys(element("canvas", HTMLElement), this.#stage, {
      moveBy: (id, by) => this.#moveBy(id, by),
      remove: (id) => this.#remove(id),
      write: (id) => this.#write(id),
      undo: () => this.#writable && this.#shapes.undo(),
      redo: () => this.#writable && this.#shapes.redo(),
      chosen: (id) => this.#choose(id),
      reached: (id) => this.#show(id),
    });
    const nameNear = pointersView(element("pointers", HTMLElement), people);
    watchPointers(this.#stage, {
      pointed: (at) => {
        const place = at === undefined ? undefined : toCanvas(this.#cameraNow, at);
        provider.presence.set({ cursor: place ?? null });
        nameNear(place, NAMED_WITHIN_PX / this.#cameraNow.zoom);
      },
      pannedBy: (pixels) => this.#look(panned(this.#cameraNow, pixels)),
      zoomedBy: (factor, at) => this.#zoomBy(factor, at),
      draggedBy: (id, pixels) => this.#drag(id, pixels),
      dropped: (id) => this.#drop(id),
    });
    this.#shapes.observe(() => this.#draw());
    this.#watchHolders();
    new ResizeObserver(() => this.#receiveSize()).observe(this.#stage);
    this.#draw();
  }

  /** Call after the document has loaded. A canvas hidden behind the text opens when it becomes visible. */
  open(): void {
    if (this.#size.width > 0) this.#look(cameraAtFirst(this.#shapes.all(), this.#size));
    else this.#camera = undefined;
  }

  setWritable(writable: boolean): void {
    this.#writable = writable;
    element("canvas", HTMLElement).dataset["writable"] = String(writable);
    this.#tools.setWritable(writable);
    this.#draw();
  }

  get #size(): ViewSize {
    return { width: this.#stage.clientWidth, height: this.#stage.clientHeight };
  }

  get #middle(): Point {
    return { x: this.#size.width / 2, y: this.#size.height / 2 };
  }

  get #cameraNow(): Camera {
    return this.#camera ?? cameraOver(this.#size);
  }

  #receiveSize(): void {
    if (this.#size.width > 0 && this.#camera === undefined) this.open();
    else if (this.#size.width > 0) this.#look(this.#cameraNow);
    else this.#provider.presence.set({ viewport: null }); // The text hides the canvas.
  }

  #look(camera: Camera): void {
    const { x, y, zoom } = camera;
    this.#camera = camera;
    this.#world.style.transform = `scale(${zoom}) translate(${-x}px, ${-y}px)`;
    this.#stage.style.setProperty("--zoom", String(zoom));
    this.#stage.style.setProperty("--ground-x", `${-x * zoom}px`);
    this.#stage.style.setProperty("--ground-y", `${-y * zoom}px`);
    this.#zoom.textContent = `${Math.round(zoom * 100)}%`;
    this.#provider.presence.set({ viewport: viewportOf(camera, this.#size) });
  }

  #zoomBy(factor: number, at: Point): void {
    this.#look(zoomed(this.#cameraNow, factor, at));
  }

  #add(kind: ShapeKind): void {
    const id = Math.random().toString(36).slice(2, 12);
    const { x, y } = toCanvas(this.#cameraNow, this.#middle);
    const aside = (): number => (2 * Math.random() - 1) * ASIDE;
    this.#shapes.add(id, kind, { x: x + aside(), y: y + aside() }, this.#colour());
    if (kind === "note") this.#write(id);
    else this.#view.focus(id);
  }

  #choose(id: string | undefined): void {
    if (id === this.#chosen) return;
    this.#chosen = id;
    this.#draw();
  }

  /** Moves the focus to the stage: the Remove button is disabled now. */
  #remove(id: string): void {
    if (!this.#writable) return;
    this.#shapes.remove(id);
    this.#stage.focus();
  }

  #write(id: string): void {
    if (!this.#writable) return;
    this.#view.edit(id, (text) => {
      if (text !== undefined) this.#shapes.write(id, text);
      this.#draw(); // Other people may have changed the text in the meantime.
    });
  }

  #moveBy(id: string, { x, y }: Point): void {
    const shape = this.#find(id);
    if (shape === undefined || !this.#writable) return;
    this.#shapes.move(id, { x: shape.x + x, y: shape.y + y });
    this.#show(id);
  }

  #show(id: string): void {
    const shape = this.#find(id);
    if (shape !== undefined) this.#look(cameraShowing(this.#cameraNow, shape, this.#size));
  }

  #drag(id: string, pixels: Point): void {
    const from = this.#own.get(id)?.place ?? this.#find(id);
    if (from === undefined || !this.#writable) return;
    const { zoom } = this.#cameraNow;
    const place = { x: from.x + pixels.x / zoom, y: from.y + pixels.y / zoom };
    this.#own.set(id, { place, person: undefined });
    this.#provider.presence.set({ holding: { shape: id, place: { x: Math.round(place.x), y: Math.round(place.y) } } });
    this.#draw();
  }

  #drop(id: string): void {
    const hold = this.#own.get(id);
    if (hold === undefined) return;
    this.#own.delete(id);
    if (this.#writable) this.#shapes.move(id, hold.place); // The right to write may have been taken during the drag.
    this.#draw();
    setTimeout(() => {
      if (this.#own.size === 0) this.#provider.presence.set({ holding: null });
    }, HOLD_AFTER_DROP_MS);
  }

  #find(id: string): Shape | undefined {
    return this.#shapes.all().find((shape) => shape.id === id);
  }

  #draw(): void {
    const shapes = this.#shapes.all();
    this.#hint.hidden = shapes.length > 0;
    if (!shapes.some(({ id }) => id === this.#chosen)) this.#chosen = undefined; // Another person removed it.
    this.#tools.setRemovable(this.#writable && this.#chosen !== undefined);
    const hadFocus = this.#stage.contains(document.activeElement);
    this.#view.draw(shapes, new Map([...heldByOthers(this.#people), ...this.#own]), this.#chosen);
    // The focused shape is gone: undone, or removed by another person. Without a focus, keys would have no target.
    if (hadFocus && !this.#stage.contains(document.activeElement)) this.#stage.focus();
  }

  /** Redraws only when a held shape changes. Most presence updates are pointers. */
  #watchHolders(): void {
    const { people, onShown } = this.#people;
    const holders = new Set<string>();
    onShown((ids) => {
      const touched = ids.filter((id) => holders.has(id) || people.get(id)?.holding !== undefined);
      for (const id of touched) {
        if (people.get(id)?.holding === undefined) holders.delete(id);
        else holders.add(id);
      }
      if (touched.length > 0) this.#draw();
    });
  }
}

function heldByOthers({ people }: RoomPeople): [string, ShapeHold][] {
  return [...people.values()].flatMap((person) =>
    person.self || person.holding === undefined ? [] : [[person.holding.shape, { place: person.holding.place, person }] as const],
  );
}
