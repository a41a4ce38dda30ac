/**
 * The shapes on the canvas, in the same document as the text. A position is one value, so that two simultaneous drags
 * end at one of the two positions. Invalid content of the document is ignored.
 */

import type { Point, Rectangle } from "@coroom/client";
import * as Y from "yjs";

export const SHAPE_KINDS = ["note", "rectangle", "ellipse"] as const;
export type ShapeKind = (typeof SHAPE_KINDS)[number];
export type Shape = Rectangle & {
  readonly id: string;
  readonly kind: ShapeKind;
  readonly colour: number;
  readonly text: string;
  readonly level: number;
};

const SIZES: Readonly<Record<ShapeKind, { readonly width: number; readonly height: number }>> = {
  note: { width: 180, height: 132 },
  rectangle: { width: 200, height: 120 },
  ellipse: { width: 160, height: 120 },
};
const SHAPES_MAX = 2000;
const TEXT_CHARS_MAX = 500;
const PLACE_MAX = 1_000_000;
const COLOURS = 8;

export class Shapes {
  readonly #doc: Y.Doc;
  readonly #shapes: Y.Map<Y.Map<unknown>>;
  /** Local changes only. */
  readonly #undoManager: Y.UndoManager;
  /** The shape of the last move, while nothing else was changed: its moves are undone together. */
  #moving: string | undefined;

  constructor(doc: Y.Doc) {
    this.#doc = doc;
    this.#shapes = doc.getMap("shapes");
    this.#undoManager = new Y.UndoManager(this.#shapes);
  }

  /** Returns the shapes from the lowest to the highest. */
  all(): Shape[] {
    const shapes = [...this.#shapes].flatMap(([id, values]) => parseShape(id, values) ?? []);
    return shapes.sort((a, b) => a.level - b.level || (a.id < b.id ? -1 : 1)).slice(0, SHAPES_MAX);
  }

  /** Adds a shape with its middle at `middle`, above all others. */
  add(id: string, kind: ShapeKind, middle: Point, colour: number): void {
    const { width, height } = SIZES[kind];
    const shape = new Y.Map<unknown>(
      Object.entries({ kind, colour, level: this.#levelAbove(), place: placeOf({ x: middle.x - width / 2, y: middle.y - height / 2 }) }),
    );
    this.#begin(undefined);
    this.#shapes.set(id, shape);
  }

  /** Moves a shape above all others. */
  move(id: string, to: Point): void {
    const shape = this.#shapes.get(id);
    if (shape === undefined) return; // Another person removed it.
    this.#begin(id);
    this.#doc.transact(() => {
      shape.set("place", placeOf(to));
      shape.set("level", this.#levelAbove());
    });
  }

  write(id: string, text: string): void {
    const kept = text.slice(0, TEXT_CHARS_MAX).toWellFormed();
    const shape = this.#shapes.get(id);
    if (shape === undefined || (shape.get("text") ?? "") === kept) return;
    this.#begin(undefined);
    shape.set("text", kept);
  }

  remove(id: string): void {
    this.#begin(undefined);
    this.#shapes.delete(id);
  }

  undo(): void {
    this.#begin(undefined);
    this.#undoManager.undo();
  }

  redo(): void {
    this.#begin(undefined);
    this.#undoManager.redo();
  }

  observe(changed: () => void): void {
    this.#shapes.observeDeep(changed);
  }

  /** Starts a new undo step, unless `moved` continues the move of the same shape. */
  #begin(moved: string | undefined): void {
    if (moved === undefined || moved !== this.#moving) this.#undoManager.stopCapturing();
    this.#moving = moved;
  }

  #levelAbove(): number {
    return Math.max(0, ...this.all().map(({ level }) => level)) + 1;
  }
}

function parseShape(id: string, values: unknown): Shape | undefined {
  if (!(values instanceof Y.Map)) return undefined;
  const [kind, place, text, colour, level] = ["kind", "place", "text", "colour", "level"].map((part) => values.get(part) as unknown);
  if (!isKind(kind) || !isPlace(place)) return undefined;
  const size = SIZES[kind];
  return {
    id,
    kind,
    ...place,
    ...size,
    text: typeof text === "string" ? text : "",
    colour: Number.isInteger(colour) ? Math.abs(colour as number) % COLOURS : 0,
    level: Number.isFinite(level) ? (level as number) : 0,
  };
}

function isKind(kind: unknown): kind is ShapeKind {
  return (SHAPE_KINDS as readonly unknown[]).includes(kind);
}

export function isPlace(place: unknown): place is Point {
  return (
    typeof place === "object" &&
    place !== null &&
    "x" in place &&
    "y" in place &&
    [place.x, place.y].every((part) => typeof part === "number" && Math.abs(part) <= PLACE_MAX)
  );
}

function placeOf({ x, y }: Point): Point {
  const within = (part: number): number => Math.round(Math.min(PLACE_MAX, Math.max(-PLACE_MAX, part)));
  return { x: within(x), y: within(y) };
}
