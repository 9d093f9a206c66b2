import { PlumblineError } from '../../model/errors.ts';
import { type OvsStatus, ovsStatus } from './status.ts';

/** Seconds. */
const DEADLINE = 5;

/** An agent that cannot be asked, or that has nothing to say about Open vSwitch. */
export class AgentError extends PlumblineError {
  constructor(why: string, options?: ErrorOptions) {
    super('agent', why, options);
  }
}

/** @throws AgentError */
export async function fetchOvsStatus(agent: string): Promise<OvsStatus> {
  const url = `${agent.replace(/\/$/, '')}/ovs`;
  let response: Response;
  try {
    response = await fetch(url, { signal: AbortSignal.timeout(DEADLINE * 1000) });
  } catch (error) {
    const cause = (error as Error).cause instanceof Error ? ((error as Error).cause as Error) : (error as Error);
    throw new AgentError(`${url}: ${cause.message}; run this on the node, or name the agent with --agent`, {
      cause: error,
    });
  }
  if (response.status === 404) {
    throw new AgentError(`${url}: this agent manages no Open vSwitch (its --mode is not full, or it is too old)`);
  }
  if (!response.ok) throw new AgentError(`${url} answers ${response.status}`);
  const result = ovsStatus.safeParse(await response.json().catch(() => undefined));
  if (!result.success) throw new AgentError(`${url} is no answer of an agent: ${result.error.issues[0]?.message}`);
  return result.data;
}
