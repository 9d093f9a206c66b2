import { explain } from '../../cli/explain/explain.ts';
import { readSubject } from '../../cli/explain/subject.ts';
import type { ClusterAccess } from '../../cli/support/cluster.ts';
import { type Command, commandText } from '../../diagnosis/remedies.ts';
import { createObjectsApi } from '../cli/objects-api-stand-in.ts';
import { runLine } from '../support/run-program.ts';
import { NOW, STATE_TABLE } from './state-table-fixture.ts';

/** Every command suggested for a state of the table. */
export async function commandsOfTable(): Promise<Command[]> {
  const found = new Map<string, Command>();
  for (const { objects, subject } of STATE_TABLE) {
    const access = { client: createObjectsApi(objects), namespace: 'tenants' } as unknown as ClusterAccess;
    const [kind, name] = subject;
    const read = await readSubject(access.client, { kind, namespace: 'tenants', name }, 'default');
    const { remedies } = await explain(access, read, {}, NOW);
    for (const command of remedies.flatMap(({ commands }) => commands)) found.set(commandText(command), command);
  }
  return [...found.values()];
}

export const shell = (text: string, kubeconfig: string) =>
  runLine(text, { env: { ...process.env, KUBECONFIG: kubeconfig } });
