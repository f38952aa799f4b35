//! Clients of which something is known before they have sent anything.

use super::Served;
use crate::users::User;
use std::sync::Arc;

impl Served {
    /// The worker that serves it, or has served it last.
    pub(crate) fn worker(&self) -> usize {
        self.connection.client.worker()
    }

    /// Makes the connection that of a user, who has proved it elsewhere.
    pub(crate) fn become_user(&mut self, user: Arc<User>) {
        self.connection.client.set_user(Arc::clone(&user.name));
        self.connection.session.identity.become_user(user);
    }
}
