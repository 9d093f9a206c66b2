import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { root } from './bundles.ts';

const SCHEMAS = join(root, 'docs/schemas');

export const OUTPUT_SCHEMAS: ReadonlyMap<string, z.ZodType> = new Map(
  readdirSync(SCHEMAS).map((file) => {
    const schema = JSON.parse(readFileSync(join(SCHEMAS, file), 'utf8')) as Parameters<typeof z.fromJSONSchema>[0];
    return [file.replace('.json', ''), z.fromJSONSchema(schema)] as const;
  }),
);

/** A command's output, read with its schema. @throws ZodError if it does not match */
export function parseOutput<T>(name: string, output: unknown): T {
  const schema = OUTPUT_SCHEMAS.get(name);
  if (schema === undefined) throw new RangeError(`docs/schemas has no ${name}.json`);
  // In printed form, without undefined values.
  return schema.parse(JSON.parse(JSON.stringify(output))) as T;
}
