"""What the page says of audits that are about models: how they attend, and models that were trained otherwise."""
