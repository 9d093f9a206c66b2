import type { MessageLogger } from '../../runtime/log.ts';
import type { SHARED_MESSAGES } from '../../runtime/log-messages.ts';

export const WEBHOOK_MESSAGES = {
  info: {
    'launcher padded to whole cores': 'CPUs before and after',
    'webhook active: the API server is set to call it': '',
    'all node reports accepted': 'after implausible ones',
  },
  warn: {
    'launcher refused': 'read the reason',
    'unreadable pod refused': '',
    'request refused': 'not from an API server',
    'webhook not active': 'VMs start as if Plumbline were not installed',
    'implausible node reports ignored': 'run `plumbline doctor agents`',
    'reading a NetworkAttachmentDefinition failed': 'retried',
  },
  error: { 'review failed': '' },
} as const;

export type WebhookLogger = MessageLogger<typeof SHARED_MESSAGES & typeof WEBHOOK_MESSAGES>;
