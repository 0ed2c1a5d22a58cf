// The part of Node's library that the tests use.
declare module "node:test" {
  export function test(name: string, body: () => void | Promise<void>): void;
}
declare module "node:assert/strict" {
  const assert: {
    equal(a: unknown, b: unknown): void;
    deepEqual(a: unknown, b: unknown): void;
    ok(value: unknown): void;
  };
  export default assert;
}
