import type { ServerResponse } from 'node:http';

export function text(response: ServerResponse, status: number, message: string): void {
  if (status === 405) response.setHeader('allow', 'GET');
  answer(response, status, 'text/plain; charset=utf-8', `${message}\n`);
}

export function answer(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}
