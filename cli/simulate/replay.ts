import * as z from 'zod';
import { list, map, name, qualifiedName, text, word } from '../../kube/bounds.ts';
import { MAX_DEVICE_GROUPS, MAX_DEVICE_RESOURCES, nodeTopologyStatus } from '../../kube/node-topology.ts';
import { preparedHost, unpredictableFor, withAssignments } from '../../model/placement/needs.ts';
import { exclusiveCpus } from '../../model/placement/place.ts';
import { VERSION } from '../../runtime/config.ts';
import { readInput } from '../../runtime/input-file.ts';
import { EXIT, usageError } from '../support/exit-status.ts';
import { type OutputFormat, print } from '../support/output.ts';

/** Bytes of a file with one line of the log. */
const MAX_FILE_BYTES = 64 * 1024;

const count = z.number().int().nonnegative();
const amounts = list(z.tuple([qualifiedName, count]), 64).transform((entries) => new Map(entries));
const usedDevices = z.tuple([name, list(count, MAX_DEVICE_GROUPS)]);
const usedMemory = z.object({ id: count, blocks: count, group: text(256), free: map(word, count, 32) });
const kind = z.enum(['init', 'sidecar', 'app']);

/** What the extender logs if a kubelet did not do as predicted. */
const predictionRecord = z.object({
  version: word,
  node: name,
  report: nodeTopologyStatus,
  assigned: list(text(1024), 2048),
  usage: z.tuple([list(usedDevices, MAX_DEVICE_RESOURCES), list(usedMemory, 32)]),
  containers: list(z.object({ name: word, kind, cpus: count.max(4096), devices: amounts, memory: amounts }), 64),
  predicted: text(1024),
  actual: text(1024),
});

/** Repeats a prediction that a kubelet has contradicted, with the model of this version. @throws CliError */
export async function runReplay(path: string, output: OutputFormat | undefined): Promise<void> {
  const record = readRecord(path);
  const { node, version, predicted, actual } = record;
  const repeated = predict(record);
  const asPredicted = repeated === actual;
  const data = { node, version, predicted, actual, repeated, asPredicted };
  await print(output, data, {
    text: () => [
      `${node}: version ${version} predicted ${predicted}, the kubelet did ${actual}.`,
      `This version (${VERSION}) predicts ${repeated}: ${asPredicted ? 'as the kubelet did' : 'it still differs'}.`,
    ],
  });
  process.exitCode = asPredicted ? EXIT.ok : EXIT.findings;
}

function readRecord(path: string) {
  try {
    const line = JSON.parse(readInput(path, MAX_FILE_BYTES).toString()) as { replay?: unknown } | null;
    const record = predictionRecord.parse(line?.replay ?? line);
    const assignments = record.assigned.map((cpus, i) => ({ podUID: `${i}`, container: '', cpus }));
    return { ...record, host: withAssignments(preparedHost(record.report), assignments, JSON.stringify(record.usage)) };
  } catch (error) {
    const [issue] = error instanceof z.ZodError ? error.issues : [];
    const fault = issue ? `${issue.path.join('.')}: ${issue.message}` : (error as Error).message;
    throw usageError(`${path}: expected one line of the extender’s log with "replay": ${fault}`, { cause: error });
  }
}

function predict({ host, containers }: ReturnType<typeof readRecord>): string {
  const request = { uid: 'replay', guaranteed: true, containers };
  const { kubelet, state } = host;
  const reason = unpredictableFor({ request, networks: [] }, host);
  if ('unpredictable' in kubelet || !state || reason !== undefined) return `nothing (${reason})`;
  const admission = kubelet.admit(state, request);
  return admission.admitted ? `${exclusiveCpus(admission.containers)}` : admission.reason;
}
