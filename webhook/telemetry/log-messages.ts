import type { MessageLogger, SHARED_MESSAGES } from '../../runtime/log.ts';

export const WEBHOOK_MESSAGES = {
  info: {
    'launcher padded to whole cores': 'CPUs before and after',
    'webhook active: the API server is set to call it': '',
    'all node reports accepted': 'after implausible ones',
  },
  warn: {
    'launcher refused': 'correct the VM as `reason` says',
    'unreadable pod refused': 'correct the pod as `reason` says',
    'request refused': 'find the caller',
    'webhook not active': 'remove the cause',
    'implausible node reports ignored': 'run `plumbline doctor agents`',
    'reading a NetworkAttachmentDefinition failed': 'check the API server',
  },
  error: { 'review failed': 'report it' },
} as const;

export type WebhookLogger = MessageLogger<typeof SHARED_MESSAGES & typeof WEBHOOK_MESSAGES>;
