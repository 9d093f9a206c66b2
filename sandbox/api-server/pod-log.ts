import { watch } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import type { KubePod } from '../objects.ts';
import { badRequest } from './errors.ts';
import type { Exchange, HandlerDeps } from './requests.ts';

const NEWLINE = 10;
const CHUNK_BYTES = 64 * 1024;

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
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const tailLines = query.get('tailLines');
    response.writeHead(200, { 'content-type': 'text/plain' });
    const start = tailLines === null ? 0 : await startOfTail(file, size, Number(tailLines));
    const end = start + Number(query.get('limitBytes') ?? Number.POSITIVE_INFINITY);
    let position = await send(file, response, start, end);
    const sendMore = async () => {
      position = await send(file, response, position, end);
      return position >= end;
    };
    if (query.get('follow') === 'true') await follow(path, sendMore, response, deps.stopping);
    response.end();
  } finally {
    await file.close();
  }
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

/** @returns the position after the last byte that was sent */
async function send(file: FileHandle, response: ServerResponse, start: number, end: number): Promise<number> {
  let position = start;
  const buffer = Buffer.alloc(CHUNK_BYTES);
  while (position < end) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(CHUNK_BYTES, end - position), position);
    if (bytesRead === 0) break;
    response.write(Buffer.from(buffer.subarray(0, bytesRead)));
    position += bytesRead;
  }
  return position;
}

async function startOfTail(file: FileHandle, size: number, lines: number): Promise<number> {
  if (lines === 0) return size;
  const buffer = Buffer.alloc(CHUNK_BYTES);
  // The newline at the end of the file ends the last line.
  let newlines = -1;
  for (let end = size; end > 0; end = Math.max(0, end - CHUNK_BYTES)) {
    const start = Math.max(0, end - CHUNK_BYTES);
    const { bytesRead } = await file.read(buffer, 0, end - start, start);
    for (let at = bytesRead - 1; at >= 0; at--) {
      if (buffer[at] !== NEWLINE) continue;
      newlines++;
      if (newlines === lines) return start + at + 1;
    }
  }
  return 0;
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
