// Random operations on two stores at once: `SEED` and `OPERATIONS` in the environment.

export const OPERATIONS = Number(process.env.OPERATIONS ?? 500);
export const SEED = Number(process.env.SEED ?? 1);

/** Numbers that a seed decides. */
export function randomness(seed = SEED) {
  let state = seed >>> 0;
  const number = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (count) => Math.floor(number() * count);
  const one = (list) => list[below(list.length)];
  const many = (most, make) => Array.from({ length: below(most + 1) }, make);
  const text = () => many(6, () => one(["a", "ß", "漢", "😀", " ", "\n", '"', "\\", "\u0000", "\u2028", "\ud83d"])).join("");
  const json = (depth = 2) => one([
    () => null, () => below(2) === 0, () => below(2000) - 1000, () => number(), text,
    ...(depth > 0 ? [() => many(3, () => json(depth - 1)), () => Object.fromEntries(many(3, () => [text(), json(depth - 1)]))] : []),
  ])();
  return { number, below, one, many, text, json };
}
