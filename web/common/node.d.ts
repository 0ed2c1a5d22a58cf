// The part of Node's library that tests and plots use, and what esbuild makes of a file.
declare module "node:test" {
  export function test(name: string, body: () => void | Promise<void>): void;
}
declare module "node:assert/strict" {
  const assert: {
    equal(a: unknown, b: unknown, message?: string): void;
    deepEqual(a: unknown, b: unknown): void;
    ok(value: unknown, message?: string): void;
  };
  export default assert;
}
declare module "node:fs" {
  export function readFileSync(path: string, encoding: "utf8"): string;
  export function writeFileSync(path: string, text: string): void;
}
declare module "node:path" {
  export function resolve(...parts: string[]): string;
}
declare module "node:process" {
  export const argv: string[];
  export const env: Record<string, string | undefined>;
}
declare module "*.css" {
  const text: string;
  export default text;
}
