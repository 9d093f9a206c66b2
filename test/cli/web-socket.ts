import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** Binary messages over an open WebSocket, on the server's side. Source: RFC 6455, section 5.2 */
export interface Frames {
  send(message: Buffer): void;
  close(): void;
}

/** Accepts a request for a WebSocket. Source: RFC 6455, section 4.2.2 */
export function accept({ headers }: IncomingMessage, socket: Socket, protocol: string): void {
  const salted = `${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const proof = createHash('sha1').update(salted).digest('base64');
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
  const own = [`Sec-WebSocket-Accept: ${proof}`, `Sec-WebSocket-Protocol: ${protocol}`];
  socket.write(`${[...lines, ...own].join('\r\n')}\r\n\r\n`);
}

const [BINARY, CLOSE, PING, PONG] = [2, 8, 9, 10];
const FIN = 0x80;
const MASKED = 0x80;

export function createFrames(socket: Socket, onMessage: (message: Buffer) => void): Frames {
  let buffer = Buffer.alloc(0);
  const write = (opcode: number, payload: Buffer) => {
    if (socket.writable) socket.write(Buffer.concat([header(opcode, payload.length), payload]));
  };
  const close = () => {
    write(CLOSE, Buffer.of(0x03, 0xe8));
    socket.end();
  };
  socket.on('data', (bytes) => {
    buffer = Buffer.concat([buffer, bytes]);
    for (let frame = next(buffer); frame !== undefined; frame = next(buffer)) {
      buffer = buffer.subarray(frame.size);
      if (frame.opcode === BINARY) onMessage(frame.payload);
      if (frame.opcode === PING) write(PONG, frame.payload);
      if (frame.opcode === CLOSE) close();
    }
  });
  return { send: (message) => write(BINARY, message), close };
}

function header(opcode: number, length: number): Buffer {
  if (length < 126) return Buffer.of(FIN | opcode, length);
  if (length > 0xff_ff) {
    const long = Buffer.alloc(10);
    long.set([FIN | opcode, 127]);
    long.writeBigUInt64BE(BigInt(length), 2);
    return long;
  }
  return Buffer.of(FIN | opcode, 126, length >> 8, length & 0xff);
}

interface Frame {
  readonly opcode: number;
  readonly payload: Buffer;
  /** Bytes including the header. */
  readonly size: number;
}

/** The first frame, once it is complete. Frames of clients are masked, and never fragmented here. */
function next(bytes: Buffer): Frame | undefined {
  if (bytes.length < 2) return undefined;
  const [first = 0, second = 0] = bytes;
  const short = second & 0x7f;
  const extra = short === 126 ? 2 : short === 127 ? 8 : 0;
  const start = 2 + extra + (second & MASKED ? 4 : 0);
  if (bytes.length < start) return undefined;
  const length = extra === 2 ? bytes.readUInt16BE(2) : extra === 8 ? Number(bytes.readBigUInt64BE(2)) : short;
  if (bytes.length < start + length) return undefined;
  const mask = bytes.subarray(2 + extra, start);
  const payload = Buffer.from(bytes.subarray(start, start + length));
  if (mask.length > 0) for (let i = 0; i < length; i++) payload[i] = (payload[i] ?? 0) ^ (mask[i % 4] ?? 0);
  return { opcode: first & 0x0f, payload, size: start + length };
}
