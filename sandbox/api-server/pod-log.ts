import { createReadStream, watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import type { KubePod } from '../objects.ts';
import { badRequest } from './errors.ts';
import type { Exchange, HandlerDeps } from './requests.ts';

/** Options that need the time of each line, which a file of lines does not have. */
const OF_TIMES = ['sinceSeconds', 'sinceTime', 'timestamps'];

/** Serves the log of a container that is a process of this machine. @throws ApiError 400 if there is none */
export async function streamLog(deps: HandlerDeps, { query, response }: Exchange, pod: KubePod): Promise<void> {
  const container = containerOf(pod, query.get('container') ?? '');
  const { name } = pod.metadata;
  if (query.get('previous') === 'true') {
    throw badRequest(`previous terminated container "${container}" in pod "${name}" not found`);
  }
  const unsupported = OF_TIMES.find((option) => !['false', '0', null].includes(query.get(option)));
  if (unsupported !== undefined) {
    throw badRequest(`the embedded API server has no ${unsupported} for logs; use tailLines, or read the whole log`);
  }
  const path = deps.processes?.logFile(pod, container);
  if (path === undefined) {
    throw badRequest(`container "${container}" in pod "${name}" runs nothing here, and has no log: only daemons run`);
  }
  const tailLines = query.get('tailLines');
  let position = tailLines === null ? 0 : startOfTail(await readFile(path), Number(tailLines));
  const end = position + Number(query.get('limitBytes') ?? Number.POSITIVE_INFINITY);
  response.writeHead(200, { 'content-type': 'text/plain' });
  /** @returns whether the end is reached */
  const sendMore = async () => {
    if (position < end) {
      for await (const chunk of createReadStream(path, { start: position, end: end - 1 })) {
        response.write(chunk);
        position += (chunk as Buffer).length;
      }
    }
    return position >= end;
  };
  await sendMore();
  if (query.get('follow') === 'true') await follow(path, sendMore, response, deps.stopping);
  response.end();
}

function containerOf(pod: KubePod, name: string): string {
  const { containers, initContainers = [] } = pod.spec;
  if (name === '' && containers.length === 1) return containers.map((container) => container.name).join();
  const names = [...containers, ...initContainers].map((container) => container.name);
  const choice = `choose one of: [${names.join(' ')}]`;
  if (name === '') throw badRequest(`a container name must be specified for pod ${pod.metadata.name}, ${choice}`);
  if (!names.includes(name)) throw badRequest(`container ${name} is not valid for pod ${pod.metadata.name}`);
  return name;
}

function startOfTail(log: Buffer, lines: number): number {
  let start = log.length;
  // Before the newline that ends the line.
  for (let line = 0; line < lines && start > 0; line++) start = log.subarray(0, start - 1).lastIndexOf('\n') + 1;
  return start;
}

/** Until the client ends, the server stops, or the end is reached. */
async function follow(path: string, sendMore: () => Promise<boolean>, response: ServerResponse, stopping: AbortSignal) {
  const changes = watch(path);
  await new Promise<void>((resolve) => {
    const finish = () => resolve();
    let reading = Promise.resolve();
    const read = () => {
      reading = reading.then(sendMore).then((isComplete) => (isComplete ? finish() : undefined));
      reading.catch(finish);
    };
    changes.on('change', read).on('error', finish);
    response.once('close', finish);
    stopping.addEventListener('abort', finish, { once: true });
    // What was written before the watch began.
    read();
  });
  changes.close();
}
