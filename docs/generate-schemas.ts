import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { ovsStatusOutput } from '../cli/ovs/output.ts';
import { simulateOutput } from '../cli/simulate/output.ts';
import { topOutput } from '../cli/top/output.ts';
import { topologyOutput } from '../cli/topology/output.ts';
import { vmStatusOutput } from '../cli/vm/output.ts';
import { doctorOutput } from './outputs/doctor.ts';
import { explainOutput } from './outputs/explain.ts';
import { verifyOutput } from './outputs/verify.ts';

const DIRECTORY = join(import.meta.dirname, 'schemas');

/** What each command prints with `-o json`, by the name of its file in docs/schemas. */
export const OUTPUTS = {
  explain: explainOutput,
  doctor: doctorOutput,
  top: topOutput,
  verify: verifyOutput,
  'vm-status': vmStatusOutput,
  'ovs-status': ovsStatusOutput,
  topology: topologyOutput,
  simulate: simulateOutput,
} as const;

/** The JSON schema (draft 2020-12) of a command's output, as its file has it. */
export function schemaText(name: keyof typeof OUTPUTS): string {
  return `${JSON.stringify(z.toJSONSchema(OUTPUTS[name]), null, 2)}\n`;
}

if (process.argv[1] === import.meta.filename) {
  for (const name of Object.keys(OUTPUTS) as (keyof typeof OUTPUTS)[]) {
    writeFileSync(join(DIRECTORY, `${name}.json`), schemaText(name));
  }
}
