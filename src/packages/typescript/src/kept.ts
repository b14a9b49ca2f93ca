// What adapters keep as it is, beside what people and providers read. The package for Python does the same.

/** The store takes 128; a field is within some. */
const DEPTH = 100;
const HALF = /\p{Surrogate}/u;
const HALVES = /\p{Surrogate}/gu;

/** A value as the store can keep it: itself, or its JSON as a text, where it has halves of characters, or more depth. */
export function keep<Value>(value: Value): Value | string {
  return isPlain(value, 0) ? value : JSON.stringify(value);
}

/** What `keep` was given. */
export function kept<Value>(field: Value | string): Value {
  return typeof field === "string" ? (JSON.parse(field) as Value) : field;
}

function isPlain(value: unknown, depth: number): boolean {
  if (typeof value === "string") return !HALF.test(value);
  if (typeof value !== "object" || value === null) return true;
  return depth < DEPTH && Object.entries(value).every(([name, item]) => !HALF.test(name) && isPlain(item, depth + 1));
}

/** A value without what the store's JSON has not. */
export function readable<Value>(value: Value, depth = 0): Value {
  const read = (value: unknown): unknown => {
    if (typeof value === "string") return value.replace(HALVES, "\ufffd");
    if (typeof value !== "object" || value === null) return value;
    if (depth === DEPTH) return "...";
    if (Array.isArray(value)) return value.map((item) => readable(item, depth + 1));
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name.replace(HALVES, "\ufffd"), readable(item, depth + 1)]));
  };
  return read(value) as Value;
}
